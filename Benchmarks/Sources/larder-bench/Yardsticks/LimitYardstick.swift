import SystemPackage

/// The most bytes on disk while ten times the limit is put, and at the end.
struct LimitYardstick: Codable {
    /// Small, because `URLCache` on Linux stores about 2 MB a second: this takes it a minute and a half.
    static let limit: Int64 = 16 << 20
    static let bodyLength = 64 << 10

    let name: String
    var highestBytes: Int64
    var finalBytes: Int64

    static func measure(_ directory: WorkDirectory, seed: UInt64) throws -> [LimitYardstick] {
        try [(PeerKind.larder, "Larder"), (.urlcache, "Foundation URLCache")].map { kind, name in
            let path = try directory.make("limit-\(kind.rawValue)")
            let peer = try kind.open(path, PeerOptions(budgetBytes: limit))
            let bodies = Bodies(.fixed(bodyLength), seed: seed)
            let sampler = BudgetSampler(path, limit: limit)
            for index in 0..<Int(limit * 10) / bodyLength {
                try Interruption.check()
                try peer.put(bodies.body(index), peer.name(index))
            }
            try peer.settle()
            let highest = sampler.stop()
            let final = FileTree.allocatedBytes(path)
            try peer.close()
            FileTree.remove(path)
            return LimitYardstick(name: name, highestBytes: max(highest, final), finalBytes: final)
        }
    }
}
