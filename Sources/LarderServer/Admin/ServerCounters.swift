import LarderHTTP

/// What an event loop counts. Plain numbers of one thread: counting costs nothing, and the sum is formed only when it
/// is asked for.
struct ServerCounters: Sendable {
    /// Methods with a row of their own; all others share the last.
    static let methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "PURGE", "other"]
    /// Upper bounds of the latency histogram, in seconds. Loopback hits are far below a millisecond, origins can take
    /// long.
    static let latencyBounds = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60]

    /// Classes of status: 0 for requests that ended before their answer began, then 1xx to 9xx.
    static let statusClasses = 10

    /// Requests by method and class of status.
    var requests = [UInt64](repeating: 0, count: methods.count * statusClasses)
    /// Answers by where they came from, in the order of ``sources``; the gateway's own last.
    var answers = [UInt64](repeating: 0, count: sources.count + 1)
    var latency = [UInt64](repeating: 0, count: latencyBounds.count + 1)
    var latencySumSeconds = 0.0
    var bytesIn: UInt64 = 0
    var bytesOut: UInt64 = 0
    /// Responses in memory for HTTP/2 clients that have not taken them yet.
    var bytesHeld: Int64 = 0
    var connectionsAccepted: UInt64 = 0
    var connectionsRefused: UInt64 = 0
    /// Closed because more memory was held than may be.
    var connectionsShed: UInt64 = 0
    var connectionsOpen: Int64 = 0
    var upstreamErrors: UInt64 = 0
    var malformedRequests: UInt64 = 0
    var clientAborts: UInt64 = 0
    var timeouts: UInt64 = 0
    var tunnels: UInt64 = 0

    static let sources: [FetchResponse.Source] = [.hit, .network, .revalidated, .stale, .fallback]

    /// Counts a request that is over.
    mutating func record(method: Int, status: Int, source: FetchResponse.Source?, seconds: Double) {
        requests[method * Self.statusClasses + min(max(status / 100, 0), 9)] += 1
        switch source {
        case .hit: answers[0] += 1
        case .network: answers[1] += 1
        case .revalidated: answers[2] += 1
        case .stale: answers[3] += 1
        case .fallback: answers[4] += 1
        case nil: answers[5] += 1
        }
        var bucket = 0
        while bucket < Self.latencyBounds.count, seconds > Self.latencyBounds[bucket] { bucket += 1 }
        latency[bucket] += 1
        latencySumSeconds += seconds
    }

    static func methodIndex(_ name: String) -> Int {
        methods.dropLast().firstIndex(of: name) ?? methods.count - 1
    }

    static func + (left: ServerCounters, right: ServerCounters) -> ServerCounters {
        var sum = left
        for index in sum.requests.indices { sum.requests[index] += right.requests[index] }
        for index in sum.answers.indices { sum.answers[index] += right.answers[index] }
        for index in sum.latency.indices { sum.latency[index] += right.latency[index] }
        sum.latencySumSeconds += right.latencySumSeconds
        sum.bytesIn += right.bytesIn
        sum.bytesOut += right.bytesOut
        sum.bytesHeld += right.bytesHeld
        sum.connectionsAccepted += right.connectionsAccepted
        sum.connectionsRefused += right.connectionsRefused
        sum.connectionsShed += right.connectionsShed
        sum.connectionsOpen += right.connectionsOpen
        sum.upstreamErrors += right.upstreamErrors
        sum.malformedRequests += right.malformedRequests
        sum.clientAborts += right.clientAborts
        sum.timeouts += right.timeouts
        sum.tunnels += right.tunnels
        return sum
    }

    /// All requests.
    var total: UInt64 { requests.reduce(0, +) }
}
