import Foundation
import Larder
import SystemPackage

/// A body of `mebibytes` that is written piece by piece, its length not known before, and read through piece by piece:
/// the memory of the process must not depend on it.
struct StreamRun {
    let store: FilePath
    let mebibytes: Int

    /// What the process may have in memory at any moment, in KiB.
    private static let limit = 64 << 10
    private static let pieceLength = 256 << 10

    func run() async throws {
        var configuration = Configuration.ofWorker
        configuration.logger.logLevel = .critical
        let store = try await Store.open(at: store, configuration)
        let count = mebibytes << 20 / Self.pieceLength
        var piece = [UInt8](repeating: 0, count: Self.pieceLength)
        for index in piece.indices { piece[index] = UInt8(truncatingIfNeeded: index &* 31) }

        var began = ContinuousClock.now
        let writer = try store.writer(for: "large")
        for number in 0..<count { try await writer.write(Self.stamped(&piece, number)) }
        try await writer.commit()
        let writing = ContinuousClock.now - began

        began = ContinuousClock.now
        guard let entry = try await store.get("large") else { throw Bad(reason: "a miss") }
        guard entry.body.length.bytes == Int64(mebibytes) << 20 else {
            throw Bad(reason: "\(entry.body.length.bytes) bytes")
        }
        var number = 0
        for try await found in entry.body.chunks(ofSize: ByteCount(Int64(Self.pieceLength))) {
            guard Self.areEqual(found, Self.stamped(&piece, number)) else {
                throw Bad(reason: "piece \(number) differs")
            }
            number += 1
        }
        guard number == count else { throw Bad(reason: "\(number) pieces") }
        let reading = ContinuousClock.now - began
        try await store.close()
        say("\(mebibytes) MiB written in \(Self.seconds(writing)), read in \(Self.seconds(reading))")
        let peak = try Self.peakMemory()
        say("peak memory \(peak) KiB")
        if peak > Self.limit { throw Bad(reason: "more than \(Self.limit) KiB of memory") }
    }

    /// The piece with its number at the start.
    private static func stamped(_ piece: inout [UInt8], _ number: Int) -> [UInt8] {
        piece.withUnsafeMutableBytes { $0.storeBytes(of: UInt64(number).littleEndian, as: UInt64.self) }
        return piece
    }

    private static func areEqual(_ first: [UInt8], _ second: [UInt8]) -> Bool {
        first.count == second.count && memcmp(first, second, first.count) == 0
    }

    private static func seconds(_ duration: Duration) -> String {
        String(format: "%.1f s", Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18)
    }

    /// The most that the process had in memory, in KiB.
    private static func peakMemory() throws -> Int {
        #if os(Linux)
            // Not getrusage(2), whose figure is that of the parent at first.
            let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
            let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
            guard let peak = line?.split(separator: " ").compactMap({ Int($0) }).first else {
                throw Bad(reason: "no VmHWM in /proc/self/status")
            }
            return peak
        #else
            var usage = rusage()
            getrusage(RUSAGE_SELF, &usage)
            return Int(usage.ru_maxrss) >> 10
        #endif
    }
}
