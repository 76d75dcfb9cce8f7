import Larder
import NIOCore

/// Bodies in files that are requested often, kept in memory up to a number of bytes.
///
/// Sending from memory is one copy into the kernel. sendfile(2) copies nothing, but a client on the same machine pays
/// for each page that it passes on. Bodies are found by their digest, so what is here is never out of date. A body is
/// taken in when it is requested for the second time. It is removed when it was not requested for a few seconds, or to
/// make room for others.
struct HotBodies {
    private struct Slot {
        let digest: Digest
        let bytes: ByteBuffer
        /// Asked for since the hand passed.
        var isUsed: Bool
    }

    private let capacity: Int
    private var positions: [Digest: Int] = [:]
    private var slots: [Slot] = []
    private var hand = 0
    private(set) var byteCount = 0
    /// Bodies that were asked for lately, by a part of their digest; a later one takes the place of an earlier.
    private var asked = [Int](repeating: 0, count: 256)
    private var nextSweep = NIODeadline.uptimeNanoseconds(0)

    /// - Parameter capacity: in bytes; 0 keeps nothing.
    init(capacity: Int) { self.capacity = capacity }

    /// The bytes of a body; nil if it is not kept, and too rare or too large to be. Errors as `Body.bytes()`.
    mutating func bytes(of body: Body, _ digest: Digest) throws -> ByteBuffer? {
        let length = body.length.bytes
        // No body takes more than a quarter.
        guard length <= capacity / 4 else { return nil }
        if let position = positions[digest] {
            slots[position].isUsed = true
            return slots[position].bytes
        }
        guard wasAsked(digest) else { return nil }
        let bytes = try body.withBytes { span in span.withUnsafeBytes { ByteBuffer(bytes: $0) } }
        while byteCount + Int(length) > capacity { dropNext() }
        positions[digest] = slots.count
        slots.append(Slot(digest: digest, bytes: bytes, isUsed: true))
        byteCount += Int(length)
        return bytes
    }

    /// Whether a body was asked for lately; it was from now on.
    private mutating func wasAsked(_ digest: Digest) -> Bool {
        let mark = digest.withBytes { $0.loadUnaligned(as: Int.self) }
        let position = mark & 255
        defer { asked[position] = mark }
        return asked[position] == mark
    }

    /// Lets go of the next body that was not asked for since the hand passed it.
    private mutating func dropNext() {
        while true {
            if hand >= slots.count { hand = 0 }
            guard slots[hand].isUsed else { return drop(hand) }
            slots[hand].isUsed = false
            hand += 1
        }
    }

    private mutating func drop(_ position: Int) {
        let slot = slots[position]
        positions[slot.digest] = nil
        byteCount -= slot.bytes.readableBytes
        let last = slots.removeLast()
        guard position < slots.count else { return }
        slots[position] = last
        positions[last.digest] = position
    }

    /// Lets go of what was not asked for since the last sweep; at most every ``sweepInterval``.
    mutating func sweep(_ now: NIODeadline) {
        guard now >= nextSweep else { return }
        nextSweep = now + Self.sweepInterval
        for position in slots.indices.reversed() {
            if slots[position].isUsed { slots[position].isUsed = false } else { drop(position) }
        }
    }

    static let sweepInterval = TimeAmount.seconds(5)
}
