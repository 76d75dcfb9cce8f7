import Larder
import SystemPackage

/// P18: bytes that reach the device for each byte put, with very many entries, beside raw LMDB with one tree. Bodies of
/// 100 bytes under random keys. Linux, on a file system with a device that nothing else writes to.
enum P18DeviceWrites: Target {
    static let id = "P18"

    static func run(_ context: TargetContext) throws -> [TargetRow] {
        let grown = try context.grown()
        let measure = "bytes to the device a byte put, 100 B, \(Render.count(grown.largeCount)) entries"
        guard let device = DeviceWrites(below: grown.large) else {
            return [
                TargetRow(
                    id: id, measure: measure, against: "raw LMDB, one tree", sense: .atMost, target: 0.6, unit: "x",
                    detail: "the directory is on no device that counts")
            ]
        }
        let load = LargeLoad(context, grown.bodies)
        let larder = try LarderPeer(grown.large)
        let lmdb = try RawLMDBPeer(grown.lmdb)
        let written = try Comparison.run(rounds: context.rounds) {
            try load.written(larder, grown.largeCount, $0, device)
        } _: {
            try load.written(lmdb, grown.largeCount, $0, device)
        }
        try larder.close()
        try lmdb.close()
        return [
            TargetRow(
                id: id, measure: measure, against: "raw LMDB, one tree", sense: .atMost, target: 0.6,
                reached: written.ratio, unit: "x", rounds: written.ratios,
                detail: "\(Render.decimal(written.subject, 1)) to \(Render.decimal(written.other, 1)) bytes")
        ]
    }
}
