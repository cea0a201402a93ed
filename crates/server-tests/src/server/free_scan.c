/* Another extension: it adds a sequential scan without cost to every table, before it calls the hooks of extensions that were
 * loaded earlier. */
#include "postgres.h"
#include "fmgr.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static set_rel_pathlist_hook_type previous;

static void
add_free_scan(PlannerInfo *root, RelOptInfo *rel, Index number, RangeTblEntry *entry)
{
	if (entry->rtekind == RTE_RELATION)
	{
		Path	   *path = create_seqscan_path(root, rel, NULL, 0);

		path->startup_cost = path->total_cost = 0;
		add_path(rel, path);
	}
	if (previous)
		previous(root, rel, number, entry);
}

void
_PG_init(void)
{
	previous = set_rel_pathlist_hook;
	set_rel_pathlist_hook = add_free_scan;
}
