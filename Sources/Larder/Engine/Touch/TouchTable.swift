/// Touches by stamp: an open-addressing table that grows with the number of entries touched, up to a limit.
struct TouchTable: Sendable {
    /// One entry's uses.
    struct Line: Sendable {
        var stamp: UInt64 = 0
        var lastUse: UInt64 = 0
        /// 0: no touch here.
        var hits: UInt32 = 0
    }

    /// Lines at most, 384 KiB of memory; three quarters of them are used.
    static let limit = 1 << 14

    private var lines: [Line] = []
    private(set) var count = 0
    /// Lines that may be used before the table grows.
    private var room = 0
    private let limit: Int

    init(limit: Int = TouchTable.limit) { self.limit = limit }

    /// A table of these touches, and more.
    init(merging touches: [Line]) {
        self.init(limit: .max)
        for touch in touches { add(touch) }
    }

    @inline(__always)
    mutating func note(stamp: UInt64, uptime: UInt64) {
        if count == room { grow() }
        let position = position(of: stamp)
        if lines[position].hits == 0 {
            lines[position] = Line(stamp: stamp, lastUse: uptime, hits: 1)
            count += 1
        } else {
            lines[position].hits &+= lines[position].hits == .max ? 0 : 1
            lines[position].lastUse = max(lines[position].lastUse, uptime)
        }
    }

    /// Adds the uses of a touch that was noted elsewhere.
    mutating func add(_ touch: Line) {
        note(stamp: touch.stamp, uptime: touch.lastUse)
        let position = position(of: touch.stamp)
        lines[position].hits = UInt32(clamping: UInt64(lines[position].hits) + UInt64(touch.hits) - 1)
    }

    /// All touches, in no order; the table is empty afterwards.
    mutating func take() -> [Line] {
        if count == 0 { return [] }
        let taken = lines.filter { $0.hits > 0 }
        // A table that was large for a moment gives its memory back.
        let capacity = count * 4 < lines.count ? lines.count / 2 : lines.count
        reset(capacity: capacity)
        return taken
    }

    @inline(__always)
    private func position(of stamp: UInt64) -> Int {
        let mask = lines.count - 1
        var position = Int(truncatingIfNeeded: (stamp &* 0x9E37_79B9_7F4A_7C15) >> 32) & mask
        while lines[position].hits != 0, lines[position].stamp != stamp { position = (position + 1) & mask }
        return position
    }

    /// A use that is about as old as half of them are. Greater than the oldest, unless all are equal.
    private func middleUse() -> UInt64 {
        let sample = stride(from: 0, to: lines.count, by: max(1, lines.count / 256)).lazy.map { lines[$0] }
        let uses = sample.filter { $0.hits > 0 }.map(\.lastUse).sorted()
        return uses.isEmpty ? 0 : uses[uses.count / 2]
    }

    private mutating func reset(capacity: Int) {
        lines = [Line](repeating: Line(), count: capacity)
        count = 0
        room = capacity / 4 * 3
    }

    /// Twice the lines; at the limit the younger half of the touches stays, about: to sort all of them would cost more
    /// than the lookups that they came from.
    private mutating func grow() {
        let oldest = lines.count >= limit ? middleUse() : 0
        var kept = lines.filter { $0.hits > 0 && $0.lastUse >= oldest }
        // Uses at one moment are neither older nor younger.
        if kept.count > lines.count / 2, lines.count >= limit { kept.removeLast(kept.count / 2) }
        reset(capacity: lines.count >= limit ? lines.count : max(64, lines.count * 2))
        for line in kept {
            lines[position(of: line.stamp)] = line
            count += 1
        }
    }
}
