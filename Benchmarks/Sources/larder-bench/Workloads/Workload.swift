import SystemPackage

/// A named thing to measure. The vocabulary is fixed, so that a name means the same from one report to the next.
protocol Workload: Sendable {
    /// As given to `--workload`.
    static var name: String { get }
    /// The question that a run answers.
    static var question: String { get }
    /// Measures. It does the opening, filling and closing itself; only what it times counts.
    static func run(_ plan: Plan) throws -> Tally
}

/// What a workload runs on.
struct Plan: Sendable {
    var kind: PeerKind
    /// An empty directory.
    var path: FilePath
    var size: BodySize
    /// Keys in the store, or put by the run.
    var entries: Int
    var threads: Int
    var seed: UInt64
    var recordsLatency = true

    var bodies: Bodies { Bodies(size, seed: seed) }

    /// Reads of a run: each key once, but not fewer than 20,000 nor more than 400,000, and not more than 4 GiB.
    var reads: Int { min(max(entries, 20_000), 400_000, max(1000, (4 << 30) / size.mean)) }

    /// Opens the peer, runs `body` with a driver that records as the plan says, and closes.
    func withPeer<R>(_ options: PeerOptions = PeerOptions(), _ body: (Driver) throws -> R) throws -> R {
        let peer = try kind.open(path, options)
        var driver = Driver(peer, bodies, threads: threads)
        driver.recordsLatency = recordsLatency
        do {
            let result = try body(driver)
            try peer.close()
            return result
        } catch {
            // The first error is the one to report.
            try? peer.close()
            throw error
        }
    }

    /// As above, with bodies 0 ..< `entries` there, put by one thread and not timed.
    func withFilledPeer<R>(_ options: PeerOptions = PeerOptions(), _ body: (Driver) throws -> R) throws -> R {
        try withPeer(options) { driver in
            var filling = driver
            filling.threads = 1
            filling.recordsLatency = false
            _ = try filling.put(0..<entries)
            return try body(driver)
        }
    }
}

/// All workloads, in the order of `larder-bench list`.
enum Workloads {
    static let all: [any Workload.Type] = [
        FillSequential.self, FillRandom.self, Overwrite.self, ReadHot.self, ReadRandom.self, ReadMissing.self,
        DisplaceChurn.self, DurablePut.self, Open.self, Dedup.self, Mixed.self, LargeStream.self,
    ]

    static func named(_ name: String) -> (any Workload.Type)? { all.first { $0.name == name } }
}
