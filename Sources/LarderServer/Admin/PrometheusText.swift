import Larder
import LarderHTTP

/// The text exposition format, version 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/
struct PrometheusText {
    private(set) var text = ""

    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    init(
        _ counters: ServerCounters, _ statistics: Statistics?, _ core: ServerCore, troubles: [StoreTrouble],
        storeFailures: UInt64
    ) {
        addRequests(counters)
        addConnections(counters)
        addLimits(counters, core)
        add("larder_gateway_log_dropped_bytes_total", "counter", "Bytes of access log lines that were given up.")
        sample("larder_gateway_log_dropped_bytes_total", core.accessLog?.droppedBytes ?? 0)
        for metric in core.service.metrics {
            add(metric.name, "counter", metric.help)
            sample(metric.name, metric.value)
        }
        if let statistics { addStore(statistics) }
        add("larder_store_failures_total", "counter", "Times that the store could not be read or written.")
        sample("larder_store_failures_total", storeFailures)
        add("larder_store_trouble", "gauge", "1 while the store fails at this work, and the origin is asked instead.")
        for work in StoreTrouble.Work.allCases {
            sample(
                "larder_store_trouble{work=\"\(work.rawValue)\"}", troubles.contains { $0.work == work } ? 1 : 0)
        }
    }

    private mutating func addRequests(_ counters: ServerCounters) {
        add(
            "larder_gateway_requests_total", "counter",
            "Requests by method and class of status; none for those that ended before an answer.")
        for (row, method) in ServerCounters.methods.enumerated() {
            for column in 0..<ServerCounters.statusClasses {
                let count = counters.requests[row * ServerCounters.statusClasses + column]
                guard count > 0 else { continue }
                let status = column == 0 ? "none" : "\(column)xx"
                sample("larder_gateway_requests_total{method=\"\(method)\",status=\"\(status)\"}", count)
            }
        }
        add("larder_gateway_answers_total", "counter", "Answers by where they came from.")
        for (index, source) in (ServerCounters.sources.map(\.rawValue) + ["gateway"]).enumerated() {
            sample("larder_gateway_answers_total{source=\"\(source)\"}", counters.answers[index])
        }
        add("larder_gateway_request_duration_seconds", "histogram", "From a request's head to the end of its answer.")
        var sum: UInt64 = 0
        for (index, bound) in ServerCounters.latencyBounds.enumerated() {
            sum += counters.latency[index]
            sample("larder_gateway_request_duration_seconds_bucket{le=\"\(bound)\"}", sum)
        }
        sum += counters.latency[ServerCounters.latencyBounds.count]
        sample("larder_gateway_request_duration_seconds_bucket{le=\"+Inf\"}", sum)
        sample("larder_gateway_request_duration_seconds_sum", counters.latencySumSeconds)
        sample("larder_gateway_request_duration_seconds_count", sum)
        add("larder_gateway_upstream_errors_total", "counter", "Requests for which the origin gave no valid answer.")
        sample("larder_gateway_upstream_errors_total", counters.upstreamErrors)
        add("larder_gateway_malformed_requests_total", "counter", "Requests that were not valid HTTP.")
        sample("larder_gateway_malformed_requests_total", counters.malformedRequests)
    }

    private mutating func addConnections(_ counters: ServerCounters) {
        add("larder_gateway_bytes_total", "counter", "Bytes from and to clients.")
        sample("larder_gateway_bytes_total{direction=\"in\"}", counters.bytesIn)
        sample("larder_gateway_bytes_total{direction=\"out\"}", counters.bytesOut)
        add("larder_gateway_connections", "gauge", "Client connections that are open.")
        sample("larder_gateway_connections", counters.connectionsOpen)
        add("larder_gateway_connections_total", "counter", "Client connections, by what happened to them.")
        sample("larder_gateway_connections_total{result=\"accepted\"}", counters.connectionsAccepted)
        sample("larder_gateway_connections_total{result=\"refused\"}", counters.connectionsRefused)
        add(
            "larder_gateway_client_aborts_total", "counter",
            "Requests whose client left before the answer was complete.")
        sample("larder_gateway_client_aborts_total", counters.clientAborts)
        add("larder_gateway_timeouts_total", "counter", "Clients cut off because they were too slow.")
        sample("larder_gateway_timeouts_total", counters.timeouts)
        add("larder_gateway_tunnels_total", "counter", "Tunnels made for CONNECT.")
        sample("larder_gateway_tunnels_total", counters.tunnels)
    }

    private mutating func addLimits(_ counters: ServerCounters, _ core: ServerCore) {
        add("larder_gateway_held_bytes", "gauge", "Memory that waits for clients and origins.")
        sample("larder_gateway_held_bytes", core.memory.held)
        add("larder_gateway_held_limit_bytes", "gauge", "Memory that may wait for clients and origins.")
        sample("larder_gateway_held_limit_bytes", core.memory.limit)
        add(
            "larder_gateway_shed_total", "counter",
            "What was refused or closed to stay within a limit, by what and why.")
        for (what, why, count) in [
            ("request", "memory", core.memory.refusedRequests), ("request", "client", core.clients.refusedRequests),
            ("connection", "memory", Int(clamping: counters.connectionsShed)),
        ] {
            sample("larder_gateway_shed_total{kind=\"\(what)\",limit=\"\(why)\"}", count)
        }
        add("larder_gateway_accept_failures_total", "counter", "Connections that could not be accepted.")
        sample("larder_gateway_accept_failures_total", core.acceptFailures.load(ordering: .relaxed))
    }

    private mutating func addStore(_ statistics: Statistics) {
        add("larder_store_entries", "gauge", "Stored responses.")
        sample("larder_store_entries", statistics.entryCount)
        add("larder_store_bytes", "gauge", "Bytes on disk.")
        sample("larder_store_bytes", statistics.allocatedBytes.bytes)
        if case let limit = statistics.budget.bytes, limit != .unlimited {
            add("larder_store_budget_bytes", "gauge", "Bytes on disk that the store may use.")
            sample("larder_store_budget_bytes", limit.bytes)
        }
        add("larder_store_displaced_total", "counter", "Entries displaced by this process.")
        sample("larder_store_displaced_total", statistics.displacedCount)
        let tier = statistics.memoryTier
        add("larder_store_held_values", "gauge", "Bodies, and values made of bodies, in the memory tier.")
        sample("larder_store_held_values", tier.count)
        add("larder_store_held_bytes", "gauge", "Memory that they take.")
        sample("larder_store_held_bytes", tier.bytes.bytes)
        add("larder_store_held_lookups_total", "counter", "Lookups in the memory tier.")
        sample("larder_store_held_lookups_total{result=\"hit\"}", tier.hits)
        sample("larder_store_held_lookups_total{result=\"miss\"}", tier.misses)
    }

    private mutating func add(_ name: String, _ type: String, _ help: String) {
        text += "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n"
    }

    private mutating func sample(_ name: String, _ value: some CustomStringConvertible) {
        text += "\(name) \(value)\n"
    }
}
