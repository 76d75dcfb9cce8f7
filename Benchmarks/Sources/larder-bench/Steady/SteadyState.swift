import Larder
import SystemPackage

/// A store at its budget that takes new bodies without end, beside one that is fresh.
struct SteadyState {
    var size: BodySize
    var budgetBytes: Int64
    /// How many times the budget is put before it counts as steady.
    var factor: Int
    var rounds: Int
    var seed: UInt64
    var kind = PeerKind.larder

    /// What one run has found.
    struct Figures: Codable, Sendable {
        /// Puts a second, in rounds.
        var steady: [Double] = []
        var fresh: [Double] = []
        /// Bytes written to the device for each byte put; nil if the file system has no device.
        var deviceBytesPerByte: Double?
        /// The most that the directory took.
        var highestBytes: Int64 = 0
        /// Bytes of bodies at the end, for each byte of the budget; nil for a peer that does not tell.
        var storedShare: Double?
        /// The longest put of the steady rounds, and the 99.9th percentile, in nanoseconds.
        var longest: UInt64 = 0
        var p999: UInt64 = 0
        /// Steady over fresh, the median of the rounds.
        var ratio: Double { Comparison.median(zip(steady, fresh).map { $0 / max($1, 1e-9) }) }
    }

    /// Fills a store with `factor` times the budget, then puts a part of it in each round, in turn with a fresh one.
    func run(in directory: WorkDirectory) throws -> Figures {
        let bodies = Bodies(size, seed: seed)
        let worth = max(16, Int(budgetBytes) / size.mean)
        let part = worth * 7 / 10
        let options = PeerOptions(budgetBytes: budgetBytes)
        let path = try directory.make("steady")
        defer { FileTree.remove(path) }
        let peer = try kind.open(path, options)
        let device = DeviceWrites(below: path)
        device?.settle()
        let sampler = BudgetSampler(path, limit: budgetBytes)
        defer { _ = sampler.stop() }
        var driver = Driver(peer, bodies)
        _ = try driver.put(0..<worth * factor)
        driver.recordsLatency = true
        var figures = Figures()
        var latencies = Tally()
        var (written, put) = (Int64(0), Int64(0))
        for round in 0..<rounds {
            let indices = worth * factor + round * part..<worth * factor + (round + 1) * part
            FileTree.syncAll()
            device?.settle()
            let before = device?.bytes()
            let tally = try driver.put(indices)
            FileTree.syncAll()
            if let before, let after = device?.bytes() { written += after - before }
            put += Int64(tally.bytes)
            figures.steady.append(tally.rate)
            latencies.merge(tally)
            figures.fresh.append(try freshRate(bodies, indices, options, in: directory))
        }
        if device != nil, put > 0 { figures.deviceBytesPerByte = Double(written) / Double(put) }
        figures.highestBytes = sampler.stop()
        if let percentiles = Percentiles(latencies) {
            figures.longest = percentiles.max
            figures.p999 = percentiles.p999
        }
        if let larder = peer as? LarderPeer {
            figures.storedShare = Double(try larder.store.statistics().storedBytes.bytes) / Double(budgetBytes)
        }
        try peer.close()
        return figures
    }

    private func freshRate(
        _ bodies: Bodies, _ indices: Range<Int>, _ options: PeerOptions, in directory: WorkDirectory
    ) throws -> Double {
        let path = try directory.make("fresh")
        defer { FileTree.remove(path) }
        let peer = try kind.open(path, options)
        FileTree.syncAll()
        DeviceWrites(below: path)?.settle()
        let rate = try Driver(peer, bodies).put(indices).rate
        try peer.close()
        return rate
    }
}
