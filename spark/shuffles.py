"""An application for Spark whose jobs shuffle.

spark-submit shuffles.py KIND.. [--mb N..] [--partitions P] [--repeat R]

Prints a line of JSON for each repetition: its seconds, and whether its result is right (null: not looked at).

repartition   rows of random numbers by the hash of one of them
sort          the same rows by one of them; a job that samples them comes before
group         the same rows by one of them, of which each has a group of its own
skew          the same by a key that the first three eighths of the rows share, so that one task reads most
join          two tables of half as many rows, which share a key
pagerank      three iterations on a graph of random links: a join and a group each
"""

import argparse
import json
import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

# Bytes of a row in a shuffle: nine numbers, which do not compress.
ROW = 72
# Links of a node of the graph.
LINKS = 8


def table(spark: SparkSession, rows: int, partitions: int) -> DataFrame:
    """Rows of an id and eight numbers that follow from it."""
    return spark.range(0, rows, 1, partitions).selectExpr("id", *(f"xxhash64(id, {i}) c{i}" for i in range(8)))


def checksum(rows: DataFrame) -> tuple[int, int]:
    """Of all columns of all rows, whatever their order."""
    columns = sorted(rows.columns)
    found = rows.agg(F.count("*"), F.sum(F.pmod(F.xxhash64(*columns), F.lit(1_000_003)))).first()
    return (found[0], found[1])


def pagerank(spark: SparkSession, nodes: int, partitions: int) -> float:
    """The sum of the ranks after three iterations: every node has as many links, so it stays the number of nodes."""
    links = spark.range(0, nodes * LINKS, 1, partitions).selectExpr(f"id % {nodes} node", f"pmod(xxhash64(id), {nodes}) target")
    ranks = spark.range(0, nodes, 1, partitions).selectExpr("id node", "1.0D rank")
    for _ in range(3):
        sent = links.join(ranks, "node").selectExpr("target node", f"rank / {LINKS} share")
        given = sent.groupBy("node").agg(F.sum("share").alias("share"))
        ranks = spark.range(0, nodes, 1, partitions).withColumnRenamed("id", "node").join(given, "node", "left")
        ranks = ranks.selectExpr("node", "0.15D + 0.85D * coalesce(share, 0.0D) rank")
    return ranks.agg(F.sum("rank")).first()[0]


def run(spark: SparkSession, kinds: list[str], rows: int, partitions: int) -> None:
    """One after the other, on tables of so many rows."""
    whole = table(spark, rows, partitions)
    wanted = checksum(whole)
    for kind in kinds:
        begun = time.monotonic()
        right = None
        if kind == "repartition":
            right = checksum(whole.repartition(partitions, "c0")) == wanted
        elif kind == "sort":
            whole.sort("c0").write.format("noop").mode("overwrite").save()
        elif kind == "group":
            of = whole.groupBy("c0").agg(*(F.max(c).alias(c) for c in whole.columns if c != "c0"))
            right = checksum(of) == wanted
        elif kind == "skew":
            keyed = whole.withColumn("key", F.expr(f"if(id < {rows * 3 // 8}, -1, id)")).repartition(partitions, "key")
            of = keyed.groupBy("key", "c0").agg(*(F.max(c).alias(c) for c in whole.columns if c != "c0"))
            right = checksum(of.drop("key")) == wanted
        elif kind == "join":
            half = [whole.where(f"id % 2 = {k}").selectExpr("id div 2 key", f"struct(*) side{k}") for k in (0, 1)]
            # All columns count, else Spark would shuffle only the key.
            found = half[0].join(half[1], "key").selectExpr("int(side0.id + 1 = side1.id) same", "pmod(xxhash64(side0, side1), 7) hash")
            right = found.agg(F.count("*"), F.sum("same"), F.sum("hash")).first()[:2] == (rows // 2, rows // 2)
        else:
            nodes = rows * ROW // (3 * LINKS * 24)
            right = abs(pagerank(spark, nodes, partitions) / nodes - 1) < 1e-6
        print(json.dumps({"kind": kind, "seconds": round(time.monotonic() - begun, 3), "right": right}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    kinds = ["repartition", "sort", "group", "skew", "join", "pagerank"]
    parser.add_argument("kinds", nargs="+", choices=kinds)
    sizes = "megabytes that are shuffled, about; of several, one after the other"
    parser.add_argument("--mb", type=int, nargs="+", default=[100], help=sizes)
    parts = "of the tables and of what is shuffled; 0: as many as there are slots"
    parser.add_argument("--partitions", type=int, default=0, help=parts)
    parser.add_argument("--repeat", type=int, default=1)
    args = parser.parse_args()
    # Joins by broadcast would shuffle nothing.
    spark = SparkSession.builder.config("spark.sql.autoBroadcastJoinThreshold", "-1").getOrCreate()
    partitions = args.partitions or spark.sparkContext.defaultParallelism
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    for mb in args.mb:
        every = [k for k in args.kinds for _ in range(args.repeat)]
        run(spark, every, mb * 1_000_000 // ROW, partitions)
    spark.stop()


if __name__ == "__main__":
    main()
