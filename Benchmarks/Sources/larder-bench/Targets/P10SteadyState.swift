import Larder
import SystemPackage

/// P10: puts a second after ten times the budget was written, against a fresh store that is being filled, and against a
/// directory cache that has come to its budget in the same way; the directory is walked all the time, and must never
/// take more than the budget. P14: bytes that reach the device for each byte of these puts, against the directory
/// cache's. Bodies as on the web, of all sizes, and of 16 KiB.
enum P10SteadyState: Target {
    static let id = "P10"

    static func run(_ context: TargetContext) throws -> [TargetRow] {
        try [BodySize.web, .wide, .fixed(16 << 10)].flatMap { try rows(context, $0) }
    }

    private static func rows(_ context: TargetContext, _ size: BodySize) throws -> [TargetRow] {
        let budget: Int64 = context.preset == .quick ? 16 << 20 : 128 << 20
        var steady = SteadyState(
            size: size, budgetBytes: budget, factor: 10, rounds: context.rounds, seed: context.seed)
        let larder = try steady.runAlone(in: context.directory)
        (steady.kind, steady.rounds, steady.factor) = (.directory, 2, context.preset == .quick ? 2 : 5)
        let directory = try steady.runAlone(in: context.directory)
        let rates = (Comparison.median(larder.steady), Comparison.median(larder.fresh))
        let other = Comparison.median(directory.steady)
        let share = Double(larder.highestBytes) / Double(budget)
        var rows = [
            TargetRow(
                id: id, measure: "puts/s after 10x the budget, \(size)", against: "the fresh store", sense: .atLeast,
                target: 0.6, reached: larder.ratio, unit: "x",
                rounds: zip(larder.steady, larder.fresh).map { $0 / max($1, 1e-9) },
                detail: "\(Render.rate(rates.0)) to \(Render.rate(rates.1))"),
            TargetRow(
                id: id, measure: "the same", against: "a directory cache at its budget", sense: .atLeast, target: 10,
                reached: rates.0 / max(other, 1e-9), unit: "x", rounds: larder.steady.map { $0 / max(other, 1e-9) },
                detail: "\(Render.rate(rates.0)) to \(Render.rate(other))"),
            TargetRow(
                id: id, measure: "highest disk use meanwhile", against: "the budget", sense: .atMost, target: 1,
                reached: share, unit: "x", rounds: [share],
                detail: "\(ByteCount(larder.highestBytes)) of \(ByteCount(budget)), bodies "
                    + (larder.storedShare.map { Render.decimal($0, 2) } ?? "-") + " of it"),
        ]
        var written = TargetRow(
            id: "P14", measure: "bytes to the device a byte put, full store, \(size)", against: "a directory cache",
            sense: .atMost, target: 1, unit: "x", detail: "the directory is on no device that counts")
        if let own = larder.deviceBytesPerByte, let theirs = directory.deviceBytesPerByte {
            (written.reached, written.detail) = (
                own / max(theirs, 1e-9), "\(Render.decimal(own, 2)) to \(Render.decimal(theirs, 2)) bytes"
            )
        }
        rows.append(written)
        return rows
    }
}
