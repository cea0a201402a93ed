//! The extension's objects as the catalog describes them.

use anyhow::Result;
use postgres::Client;

use super::subjects::Entry;

/// Any object with its comment.
pub struct Object {
    /// Its name according to `pg_describe_object`, which is unique.
    pub identity: String,
    /// `function`, `operator`, `type`, `operator class`, `operator family`, `access method`, `view`,
    /// `cast` or `setting`.
    kind: String,
    /// The name without arguments.
    name: String,
    /// The name with arguments, defaults and result.
    pub signature: String,
    /// Volatility and parallel safety, if they differ from the usual ones.
    pub marks: String,
    pub comment: String,
}

const QUERY: &str = "
    WITH objects AS (
        SELECT d.classid, d.objid, pg_describe_object(d.classid, d.objid, 0) AS identity,
               obj_description(d.objid, d.classid::regclass::text::name) AS comment
        FROM pg_depend d JOIN pg_extension e
             ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
        WHERE e.extname = 'pg_neardup' AND d.deptype = 'e'
    ), described AS (
        SELECT identity, comment, 'function' AS kind, proname AS name,
               CASE prokind
                   WHEN 'p' THEN format('CALL %s(%s)', proname,
                                        replace(pg_get_function_arguments(oid), 'IN ', ''))
                   ELSE format('%s(%s) -> %s', proname, pg_get_function_arguments(oid),
                               pg_get_function_result(oid)) END AS signature,
               CASE WHEN prokind <> 'p' THEN
                   concat(CASE provolatile WHEN 's' THEN ', stable' WHEN 'v' THEN ', volatile' END,
                          CASE WHEN proparallel <> 's' THEN ', parallel unsafe' END) END AS marks
        FROM objects JOIN pg_proc ON oid = objid AND classid = 'pg_proc'::regclass
        UNION ALL
        SELECT identity, comment, 'operator', oprname,
               format('%s %s %s -> %s', oprleft::regtype, oprname, oprright::regtype, oprresult::regtype), ''
        FROM objects JOIN pg_operator ON oid = objid AND classid = 'pg_operator'::regclass
        UNION ALL
        SELECT identity, comment, 'type', typname, typname, ''
        FROM objects JOIN pg_type ON oid = objid AND classid = 'pg_type'::regclass AND typcategory <> 'A'
            AND typrelid NOT IN (SELECT oid FROM pg_class WHERE relkind <> 'c')
        UNION ALL
        SELECT identity, comment, 'operator class', opcname,
               format('%s for %s, index method %s', opcname, opcintype::regtype, amname),
               CASE WHEN opcdefault THEN ', default' END
        FROM objects JOIN pg_opclass o ON o.oid = objid AND classid = 'pg_opclass'::regclass
             JOIN pg_am a ON a.oid = opcmethod
        UNION ALL
        SELECT identity, comment, 'operator family', opfname, opfname, ''
        FROM objects JOIN pg_opfamily ON oid = objid AND classid = 'pg_opfamily'::regclass
        UNION ALL
        SELECT identity, comment, 'access method', amname, format('USING %s', amname), ''
        FROM objects JOIN pg_am ON oid = objid AND classid = 'pg_am'::regclass
        UNION ALL
        SELECT identity, comment, 'view', relname, relname, ''
        FROM objects JOIN pg_class ON oid = objid AND classid = 'pg_class'::regclass AND relkind = 'v'
        UNION ALL
        SELECT identity, comment, 'cast', '',
               format('%s::%s', castsource::regtype, casttarget::regtype),
               CASE castcontext WHEN 'e' THEN ', explicit' ELSE ', implicit' END
        FROM objects JOIN pg_cast ON oid = objid AND classid = 'pg_cast'::regclass
        UNION ALL
        SELECT name, rtrim(short_desc, '.'), 'setting', name, format('%s = %s', name, boot_val), ''
        FROM pg_settings WHERE name LIKE 'neardup.%'
    )
    SELECT identity, kind, name,
           regexp_replace(replace(signature, ' DEFAULT ', ' = '),
                          '::(text|integer|bigint|name|double precision)\\M(\\[\\])?', '', 'g') AS signature,
           coalesce(marks, '') AS marks, coalesce(comment, '') AS comment
    FROM described ORDER BY identity COLLATE \"C\"";

/// Returns all objects, including settings, sorted.
pub fn objects(client: &mut Client) -> Result<Vec<Object>> {
    client.batch_execute("LOAD 'pg_neardup'")?;
    let rows = client.query(QUERY, &[])?;
    let object = |row: &postgres::Row| Object {
        identity: row.get("identity"),
        kind: row.get("kind"),
        name: row.get("name"),
        signature: row.get("signature"),
        marks: row.get("marks"),
        comment: row.get("comment"),
    };
    Ok(rows.iter().map(object).collect())
}

impl Object {
    /// Returns whether the entry means this object.
    pub fn is(&self, entry: &Entry) -> bool {
        let (kind, name) = match entry {
            Entry::Function(name) => ("function", name),
            Entry::Operator(name) => ("operator", name),
            Entry::Type(name) => ("type", name),
            Entry::OperatorClass(name) => ("operator class", name),
            Entry::AccessMethod(name) => ("access method", name),
            Entry::View(name) => ("view", name),
            Entry::Setting(name) => ("setting", name),
            Entry::Casts => return self.kind == "cast",
        };
        self.kind == kind && self.name == *name
    }

    /// Returns whether only PostgreSQL uses the object: operator families, and objects whose comments say so.
    pub fn is_support(&self) -> bool {
        let beginnings = [
            "I/O",
            "implementation of",
            "index support",
            "handler of",
            "planner support",
            "transition of",
            "combination of",
            "serialization of",
            "deserialization of",
            "result of",
            "trigger that near_dup_track makes",
            "bytewise order: ",
            "hash for ",
            "salted hash for ",
        ];
        let is_said = beginnings
            .iter()
            .any(|start| self.comment.starts_with(start));
        is_said || self.kind == "operator family"
    }
}
