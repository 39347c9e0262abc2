-- sums per function
SELECT function, count(*) AS calls, sum(dur_ns) AS total_ns, sum(self_ns) AS self_ns, min(dur_ns), max(dur_ns)
FROM calls GROUP BY function ORDER BY total_ns DESC;
-- top 10 functions by total time
SELECT function, sum(dur_ns) AS total_ns FROM calls GROUP BY function ORDER BY total_ns DESC LIMIT 10;
-- last call of f
SELECT start_seq, ts_ns, dur_ns, a0, ret FROM calls WHERE function = 'module_03::function_077'
ORDER BY start_seq DESC LIMIT 1;
-- max(start_seq) of f
SELECT max(start_seq) FROM calls WHERE function = 'module_03::function_077';
-- ret = -1 and name = f
SELECT start_seq, ts_ns, dur_ns, a0 FROM calls WHERE ret = -1 AND function = 'module_03::function_075';
-- lag() over f
SELECT max(gap_ns), avg(gap_ns) FROM
  (SELECT ts_ns - lag(ts_ns) OVER (ORDER BY start_seq) AS gap_ns FROM calls WHERE function = 'module_03::function_075') AS t;
-- p99 per function
SELECT function, quantile_cont(dur_ns, 0.99) AS p99 FROM calls GROUP BY function ORDER BY p99 DESC;
-- one seq
SELECT start_seq, end_seq, function, dur_ns, a0, ret FROM calls WHERE start_seq = (SELECT max(start_seq) / 2 FROM calls WHERE end_seq < 10000001);
-- one known seq
SELECT start_seq, end_seq, function, dur_ns, a0, ret FROM calls WHERE start_seq IN (10000001, 10000002);
-- calls of a 1,000-seq range
SELECT start_seq, end_seq, function, dur_ns, a0, ret FROM calls WHERE start_seq BETWEEN 9000000 AND 9000999 ORDER BY start_seq;
-- events of a 1,000-seq range
SELECT * FROM events WHERE seq BETWEEN 9000000 AND 9000999 ORDER BY seq;
-- events of a 1,000-seq range, few columns
SELECT seq, kind, function, ret FROM events WHERE seq BETWEEN 9000000 AND 9000999 ORDER BY seq;
-- first 100 events
SELECT * FROM events ORDER BY seq LIMIT 100;
-- count
SELECT count(*) FROM calls;
-- counts per kind
SELECT kind, count(*) FROM events GROUP BY kind;
-- names by pattern
SELECT function, count(*) FROM calls WHERE function LIKE '%function_1%' AND file <> 'src/file9.c' GROUP BY function;
-- slow calls
SELECT function, tid, ts_ns, dur_ns, args, ret FROM calls ORDER BY dur_ns DESC LIMIT 20;
