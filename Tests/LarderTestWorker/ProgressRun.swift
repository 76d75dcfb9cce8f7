import Foundation
import Larder
import SeededData
import SystemPackage

/// Writes the body of the key "p" in ranges, as a test of bodies in progress asks for.
struct ProgressRun {
    let store: Store
    let length: Int

    private var bytes: [UInt8] { makeBody(name: 1, seed: 5, length: length) }

    /// The first half, then waits to be killed.
    func hold() throws {
        let writer = try store.partialWriter(for: "p", PutOptions(metadata: [1]), total: ByteCount(length))
        try write(0..<length / 2, to: writer)
        try store.flush()
        say("HALF")
        withExtendedLifetime(writer) { while true { pause() } }
    }

    /// The first half; the rest once there is an entry "go": which says with its first byte what to do then.
    func wait() throws {
        var writer: PartialWriter? = try store.partialWriter(for: "p", total: ByteCount(length))
        if let writer { try write(0..<length / 2, to: writer) }
        try store.flush()
        say("HALF")
        var order: UInt8?
        while order == nil {
            order = try store.get("go")?.body.bytes().first
            usleep(1000)
        }
        if order == UInt8(ascii: "s") { return try writer!.suspend() }
        try write(length / 2..<length, to: writer!)
        if order == UInt8(ascii: "d") { try store.put(bytes, for: "same") }
        try writer!.commit()
        writer = nil
    }

    /// Everything a writer does: out of order, left, taken over, committed, cancelled, shared.
    func all() throws {
        let third = length / 3
        let first = try store.partialWriter(for: "p", PutOptions(durability: .durable), total: ByteCount(length))
        try write(third..<2 * third, to: first)
        try store.flush()
        try write(0..<third, to: first)
        try first.suspend()
        say("LEFT")
        let second = try store.partialWriter(for: "p", PutOptions(durability: .durable))
        try write(2 * third..<length, to: second)
        try second.commit()
        say("DONE")
        let third2 = try store.partialWriter(for: "shared")
        try write(0..<length, to: third2)
        try third2.commit()
        let fourth = try store.partialWriter(for: "cancelled")
        try write(0..<length, to: fourth)
        fourth.cancel()
    }

    private func write(_ range: Range<Int>, to writer: PartialWriter) throws {
        let bytes = bytes
        for start in stride(from: range.lowerBound, to: range.upperBound, by: 10_000) {
            try writer.write(bytes[start..<min(start + 10_000, range.upperBound)], at: Int64(start))
        }
    }
}
