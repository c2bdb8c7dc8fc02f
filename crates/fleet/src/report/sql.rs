//! The queries, in SQL that DuckDB takes as well.
//!
//! Ratios are counted in thousandths first. That leaves one row for each different ratio, and
//! quantiles of these rows are exact to a thousandth.

/// The columns in which similar trials agree.
const ALIKE: &str = "tier, system, cipher, key_bits, against, fs, workload, op, block_bytes, \
                     queue_depth, threads, several_cores, device, cpu";

/// The overhead of trials, with nothing null that is grouped by. A simulated drive is the
/// same on every host: it tells nothing of a processor and a kernel. A shard counts once it is
/// whole: of one there may be several attempts that are not.
pub(super) const COMPARED: &str = "
CREATE VIEW compared AS
SELECT run, started, tier, system, against, workload, op, block_bytes, queue_depth, threads,
       coalesce(program_version, '') AS version,
       coalesce(cipher, '') AS cipher,
       coalesce(key_bits, 0) AS key_bits,
       coalesce(fs, '') AS fs,
       coalesce(backend LIKE '% cores', false) AS several_cores,
       coalesce(device_model, device_kind) AS device,
       device_kind = 'simulated' AS simulated,
       CASE device_kind WHEN 'simulated' THEN 'simulated' ELSE coalesce(cpu, '') END AS cpu,
       CASE device_kind WHEN 'simulated' THEN 'simulated' ELSE coalesce(kernel, '') END AS kernel,
       CAST(round(overhead_ratio * 1000) AS BIGINT) AS thousandths
FROM trials
WHERE overhead_ratio IS NOT NULL AND against <> system AND (shard IS NULL OR NOT partial)";

/// How much there is, and of what version.
pub(super) const EXTENT: &str = "
SELECT count(*) FILTER (WHERE shard IS NULL OR NOT partial) AS trials,
       count(DISTINCT CASE WHEN shard IS NULL OR NOT partial THEN run END) AS runs,
       count(*) FILTER (WHERE schema_version IS NULL) AS strange,
       max(schema_version) AS version,
       (SELECT count(*) FROM compared WHERE against IN ('none', 'lab:none')) AS compared
FROM trials";

/// The properties in which hosts differ, with the column or expression of each.
pub(super) const PROPERTIES: &[(&str, &str)] = &[
    ("CPU", "cpu"),
    ("device", "device"),
    ("kernel", "kernel"),
    (
        "cipher",
        "cipher || CASE key_bits WHEN 0 THEN '' ELSE ' (' || CAST(key_bits AS VARCHAR) || ' bit)' END",
    ),
];

/// Quantiles of the overhead against plain by `property`.
pub(super) fn quantiles(property: &str) -> String {
    format!(
        "
WITH counted AS (
  SELECT {property} AS name, thousandths, count(*) AS n
  FROM compared WHERE against IN ('none', 'lab:none') GROUP BY 1, 2),
placed AS (
  SELECT name, thousandths,
         sum(n) OVER (PARTITION BY name ORDER BY thousandths) AS upto,
         sum(n) OVER (PARTITION BY name) AS total
  FROM counted)
SELECT name, max(total) AS trials,
       min(thousandths) FILTER (WHERE upto * 100 >= total * 5) / 1000.0 AS p5,
       min(thousandths) FILTER (WHERE upto * 100 >= total * 25) / 1000.0 AS p25,
       min(thousandths) FILTER (WHERE upto * 100 >= total * 50) / 1000.0 AS p50,
       min(thousandths) FILTER (WHERE upto * 100 >= total * 75) / 1000.0 AS p75,
       min(thousandths) FILTER (WHERE upto * 100 >= total * 95) / 1000.0 AS p95
FROM placed GROUP BY name ORDER BY trials DESC, name"
    )
}

/// A number for all that are alike on real storage: groups of it are far smaller than groups of
/// fourteen columns.
pub(super) fn alike() -> String {
    format!(
        "
CREATE TABLE alike AS
SELECT row_number() OVER () AS number, kinds.*
FROM (SELECT DISTINCT {ALIKE} FROM compared WHERE NOT simulated) AS kinds"
    )
}

/// Trials on real storage by the number of those that are like them.
pub(super) fn numbered() -> String {
    format!(
        "
CREATE VIEW numbered AS
SELECT number, run, started, version, thousandths
FROM alike JOIN compared USING ({ALIKE}) WHERE NOT simulated"
    )
}

/// The 20 trials on real storage that are the farthest from all alike, and how many are far.
pub(super) fn outliers() -> String {
    format!(
        "
WITH counted AS (
  SELECT number, thousandths, count(*) AS n FROM numbered GROUP BY number, thousandths),
placed AS (
  SELECT *, sum(n) OVER (PARTITION BY number ORDER BY thousandths) AS upto,
         sum(n) OVER (PARTITION BY number) AS total
  FROM counted),
quartiles AS (
  SELECT number, max(total) AS trials,
         min(thousandths) FILTER (WHERE upto * 4 >= total) AS q1,
         min(thousandths) FILTER (WHERE upto * 4 >= total * 2) AS q2,
         min(thousandths) FILTER (WHERE upto * 4 >= total * 3) AS q3
  FROM placed GROUP BY number HAVING max(total) >= 8),
fenced AS (
  SELECT *, q1 - greatest(3 * (q3 - q1), 20) AS low, q3 + greatest(3 * (q3 - q1), 20) AS high
  FROM quartiles),
far AS (
  SELECT number, run, trials, thousandths, q1, q2, q3, count(*) OVER () AS found
  FROM fenced JOIN numbered USING (number) WHERE thousandths < low OR thousandths > high)
SELECT run, {ALIKE}, trials, thousandths / 1000.0 AS ratio,
       q1 / 1000.0 AS p25, q2 / 1000.0 AS p50, q3 / 1000.0 AS p75, found
FROM far JOIN alike USING (number)
ORDER BY abs(thousandths - q2) DESC, run, {ALIKE} LIMIT 20"
    )
}

/// Versions whose median is below that of the version seen before them. The interval
/// of a median lies between the values of ranks n/2 ± 0.98·√n, by the binomial
/// distribution.
pub(super) fn regressions() -> String {
    format!(
        "
WITH counted AS (
  SELECT number, version, thousandths, count(*) AS n, min(started) AS seen
  FROM numbered GROUP BY number, version, thousandths),
placed AS (
  SELECT *, sum(n) OVER (PARTITION BY number, version ORDER BY thousandths) AS upto,
         sum(n) OVER (PARTITION BY number, version) AS total
  FROM counted),
ranked AS (
  SELECT *, greatest(1, floor(total / 2.0 - 0.98 * sqrt(total))) AS rank FROM placed),
versions AS (
  SELECT number, version, max(total) AS trials, min(seen) AS seen,
         min(thousandths) FILTER (WHERE upto * 2 >= total) AS p50,
         min(thousandths) FILTER (WHERE upto >= rank) AS low,
         min(thousandths) FILTER (WHERE upto >= total + 1 - rank) AS high
  FROM ranked GROUP BY number, version HAVING max(total) >= 6),
followed AS (
  SELECT *, lag(version) OVER (PARTITION BY number ORDER BY seen, version) AS before,
         lag(trials) OVER (PARTITION BY number ORDER BY seen, version) AS before_trials,
         lag(p50) OVER (PARTITION BY number ORDER BY seen, version) AS before_p50,
         lag(low) OVER (PARTITION BY number ORDER BY seen, version) AS before_low
  FROM versions)
SELECT {ALIKE}, before, before_trials, before_p50 / 1000.0 AS before_ratio,
       version AS after, trials AS after_trials, p50 / 1000.0 AS after_ratio
FROM followed JOIN alike USING (number)
WHERE high < before_low AND before_p50 - p50 >= 20
ORDER BY before_p50 - p50 DESC, {ALIKE}"
    )
}
