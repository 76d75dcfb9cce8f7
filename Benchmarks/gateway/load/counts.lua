-- wrk's own counts, exact, as one line of JSON after its report. Without request() and response(), no Lua runs while it measures.
done = function(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format(
        '\nCOUNTS {"requests": %d, "bytes": %.0f, "microseconds": %d, "p50": %d, "p99": %d, "max": %d, "status": %d, "socket": %d}\n',
        summary.requests, summary.bytes, summary.duration,
        latency:percentile(50), latency:percentile(99), latency.max,
        errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
