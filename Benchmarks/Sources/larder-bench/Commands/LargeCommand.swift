import ArgumentParser
import Foundation
import SystemPackage

/// `large`: fills, hits, misses and puts of a store with very many entries, what reaches the device, what lies on the
/// disk, reads beside a writer in another process, and an open after that process was killed.
struct LargeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "large", abstract: "Measure peers with very many entries of 100 bytes under random keys.")

    @Option(help: "Peers, as 'larder-bench list' names them.") var peer: [PeerKind] = [.larderSpan, .lmdb, .segments]
    @Option(help: "Entries: 1,000 ... 100,000,000.") var entries = 1_000_000
    @Option(help: "The same seed gives the same order.") var seed: UInt64 = 1
    @Flag(help: "Print JSON.") var json = false
    @OptionGroup var work: WorkOptions

    struct Figures: Codable {
        var peer: String
        var entries: Int
        var fillRate = 0.0
        var fillDeviceBytesPerByte: Double?
        /// On the disk, beyond keys and bodies.
        var bytesAnEntry = 0.0
        var anonymousBytes: Int64?
        var openMilliseconds = 0.0
        var hitRate = 0.0
        var missRate = 0.0
        var putRate = 0.0
        var putDeviceBytesPerByte: Double?
        /// Hits a second while another process puts.
        var hitRateBesideWriter: Double?
        var openMillisecondsAfterKill: Double?
        /// Entries of the fill that were not there after the kill, of 100,000 looked for.
        var missingAfterKill: Int?
    }

    func validate() throws {
        if !(1_000...100_000_000).contains(entries) {
            throw ValidationError("--entries \(entries): 1000 ... 100000000")
        }
    }

    func run() throws {
        Interruption.listen()
        for kind in peer {
            let figures = try WorkDirectory.with(work.parent) { try measure(kind, in: $0) }
            print(try json ? JSONOutput.text(figures) : figures.text)
        }
    }

    private var options: PeerOptions { PeerOptions(entries: entries + entries / 4 + 300_000) }

    private func measure(_ kind: PeerKind, in directory: WorkDirectory) throws -> Figures {
        var figures = Figures(peer: kind.rawValue, entries: entries)
        let path = try directory.make("store")
        let device = DeviceWrites(below: path)
        let bodies = Bodies(.fixed(GrownStore.bodySize), seed: seed)
        FileTree.syncAll()
        device?.settle()
        let before = device?.bytes() ?? 0
        var peer = try kind.open(path, options)
        let order = Order.shuffled(0..<entries, seed: seed).map { $0 * 2 }
        let filled = try Driver(peer, bodies).put(order)
        let closing = try Self.seconds { try peer.close() }
        figures.fillRate = Double(entries) / (filled.seconds + closing)
        FileTree.syncAll()
        figures.fillDeviceBytesPerByte = device?.bytes().map { Double($0 - before) / Double(filled.bytes) }
        let keyBytes = Name.bytes(0).count
        figures.bytesAnEntry =
            Double(FileTree.allocatedBytes(path)) / Double(entries) - Double(keyBytes + GrownStore.bodySize)

        figures.openMilliseconds = try Self.seconds { peer = try kind.open(path, options) } * 1000
        let load = LargeLoad(seed: seed, bodies, gets: 400_000, puts: 40_000)
        _ = try load.hits(peer, entries, 0)
        figures.hitRate = try load.hits(peer, entries, 1)
        let absent = Order.uniform(400_000, below: entries, seed: seed).map { $0 * 2 + 1 }
        figures.missRate = try Driver(peer, bodies).get(absent, mayMiss: true).rate
        figures.putRate = try load.puts(peer, entries, 2)
        if let device { figures.putDeviceBytesPerByte = try load.written(peer, entries, 3, device) }
        figures.anonymousBytes = ProcessFigures.anonymousBytes()
        if kind == .lmdb {
            try peer.close()
            return figures
        }
        try withWriter(kind, path) { figures.hitRateBesideWriter = try load.hits(peer, entries, 4) }
        try peer.close()
        figures.openMillisecondsAfterKill = try Self.seconds { peer = try kind.open(path, options) } * 1000
        let sample = Order.uniform(100_000, below: entries, seed: seed &+ 5).map { $0 * 2 }
        let found = try Driver(peer, bodies).get(sample, mayMiss: true)
        figures.missingAfterKill = found.misses
        guard found.bytes == (sample.count - found.misses) * GrownStore.bodySize else {
            throw BenchError("a body of another length")
        }
        try peer.close()
        return figures
    }

    /// Runs `body` while another process puts, which then is killed.
    private func withWriter(_ kind: PeerKind, _ path: FilePath, _ body: () throws -> Void) throws {
        let writer = Process()
        writer.executableURL = URL(fileURLWithPath: Subprocess.ownExecutable)
        writer.arguments = [
            "large-writer", "--peer", kind.rawValue, "--store", path.string, "--entries", "\(entries)", "--room",
            "\(options.entries)",
        ]
        let output = Pipe()
        writer.standardOutput = output
        try writer.run()
        // It says when its first puts are in.
        _ = try output.fileHandleForReading.read(upToCount: 1)
        defer {
            kill(writer.processIdentifier, SIGKILL)
            writer.waitUntilExit()
        }
        try body()
    }

    private static func seconds(_ body: () throws -> Void) rethrows -> Double {
        let start = Ticks.now()
        try body()
        return Double(Ticks.now() - start) / 1e9
    }
}

/// `large-writer`: puts new entries until it is killed.
struct LargeWriterCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "large-writer", abstract: "Put until killed.", shouldDisplay: false)

    @Option var peer: PeerKind
    @Option var store: String
    @Option var entries: Int
    @Option var room: Int

    func run() throws {
        let peer = try peer.open(FilePath(store), PeerOptions(entries: room))
        let driver = Driver(peer, Bodies(.fixed(GrownStore.bodySize), seed: 7))
        for round in 0... {
            // The same 20,000 again and again, so that tables that do not grow suffice.
            let order = Order.uniform(20_000, below: entries, seed: 7).map { $0 * 2 + 1 }
            _ = try driver.put(order, version: round)
            if round == 0 { FileHandle.standardOutput.write(Data([1])) }
        }
    }
}

extension LargeCommand.Figures {
    /// For humans to read.
    var text: String {
        func number(_ value: Double?, _ digits: Int = 0) -> String { value.map { Render.decimal($0, digits) } ?? "-" }
        return """
            \(peer), \(Render.count(entries)) entries of 100 bytes
              fill    \(Render.rate(fillRate))/s, \(number(fillDeviceBytesPerByte, 1)) bytes to the device a byte
              disk    \(number(bytesAnEntry)) bytes an entry beyond its key and body
              open    \(number(openMilliseconds, 1)) ms
              hits    \(Render.rate(hitRate))/s
              misses  \(Render.rate(missRate))/s
              puts    \(Render.rate(putRate))/s, \(number(putDeviceBytesPerByte, 1)) bytes to the device a byte
              memory  \(number(anonymousBytes.map { Double($0) / 1e6 })) MB
              beside a writer in another process
                hits  \(hitRateBesideWriter.map { Render.rate($0) + "/s" } ?? "-")
              after SIGKILL of that process
                open  \(number(openMillisecondsAfterKill, 1)) ms
                lost  \(missingAfterKill.map(String.init) ?? "-") of 100,000 entries

            """
    }
}
