"""Deduplicates a directory of JSON lines with datatrove: python datatrove_pipeline.py DOCUMENTS INTO TASKS."""

import sys

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import (
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.typeshelper import Languages

DOCUMENTS, INTO = sys.argv[1:3]
TASKS = int(sys.argv[3])
config = MinhashConfig(n_grams=3, num_buckets=14, hashes_per_bucket=8)


def main():
    signatures = LocalPipelineExecutor(
        pipeline=[
            JsonlReader(DOCUMENTS),
            MinhashDedupSignature(f"{INTO}/signatures", config=config, language=Languages.english),
        ],
        tasks=TASKS,
        logging_dir=f"{INTO}/logs/signatures",
    )
    buckets = LocalPipelineExecutor(
        pipeline=[MinhashDedupBuckets(f"{INTO}/signatures", f"{INTO}/buckets", config=config)],
        tasks=config.num_buckets,
        workers=TASKS,
        logging_dir=f"{INTO}/logs/buckets",
        depends=signatures,
    )
    cluster = LocalPipelineExecutor(
        pipeline=[
            MinhashDedupCluster(
                f"{INTO}/buckets", f"{INTO}/remove", config=config, save_cluster_id=True, ignore_index_matches=True
            )
        ],
        tasks=1,
        logging_dir=f"{INTO}/logs/cluster",
        depends=buckets,
    )
    LocalPipelineExecutor(
        pipeline=[
            JsonlReader(DOCUMENTS),
            MinhashDedupFilter(
                f"{INTO}/remove",
                load_cluster_ids=True,
                exclusion_writer=JsonlWriter(f"{INTO}/removed", compression=None),
            ),
            JsonlWriter(f"{INTO}/kept", compression=None),
        ],
        tasks=TASKS,
        logging_dir=f"{INTO}/logs/filter",
        depends=cluster,
    ).run()


if __name__ == "__main__":
    main()
