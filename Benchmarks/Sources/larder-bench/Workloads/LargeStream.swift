import Larder
import SystemPackage

/// How fast can bodies that do not fit in memory be written and read in pieces of 256 KiB? One operation is a body
/// written and read whole. For larder and plain files; `--size` is the length of a body, best 16 MiB and more.
enum LargeStream: Workload {
    static let name = "large-stream"
    static let question = "How fast are large bodies written and read in pieces of 256 KiB?"
    private static let piece = 256 << 10

    static func run(_ plan: Plan) throws -> Tally {
        let bodies = plan.bodies
        var tally = Tally.recording
        try plan.withPeer { driver in
            let scratch = Scratch(Self.piece)
            for index in 0..<plan.entries {
                try Interruption.check()
                let body = bodies.body(index)
                let start = Ticks.now()
                switch driver.peer {
                case let peer as LarderPeer: try stream(body, Name.text(index), peer.store, scratch)
                case is PlainFilesPeer: try stream(body, plan.path.appending("stream-\(index)"), scratch)
                default: throw BenchError("large-stream is for larder and files")
                }
                let elapsed = Ticks.now() - start
                tally.operations += 1
                tally.bytes += body.count
                tally.seconds += Double(elapsed) / 1e9
                _ = tally.latency?.record(elapsed)
            }
        }
        return tally
    }

    private static func stream(_ body: [UInt8], _ key: String, _ store: Store, _ scratch: Scratch) throws {
        let writer = try store.writer(for: Key(key))
        try body.withUnsafeBytes { bytes in
            for start in stride(from: 0, to: bytes.count, by: piece) {
                try writer.write(UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + piece, bytes.count)]))
            }
        }
        try writer.commit()
        guard let entry = try store.get(Key(key)) else { throw BenchError("\(key) is not there") }
        var read = 0
        while read < body.count {
            let bytes = try entry.body.bytes(in: Int64(read)..<Int64(read + piece))
            if bytes.isEmpty { break }
            read += bytes.count
        }
        guard read == body.count else { throw BenchError("\(key) has \(read) bytes, not \(body.count)") }
    }

    private static func stream(_ body: [UInt8], _ path: FilePath, _ scratch: Scratch) throws {
        let file = try FileDescriptor.open(
            path, .readWrite, options: [.create, .truncate], permissions: FilePermissions(rawValue: 0o600))
        try file.closeAfter {
            try body.withUnsafeBytes { bytes in
                for start in stride(from: 0, to: bytes.count, by: piece) {
                    try file.writeAll(
                        UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + piece, bytes.count)]))
                }
            }
            var read = 0
            while read < body.count {
                let count = try file.read(fromAbsoluteOffset: Int64(read), into: scratch.buffer)
                if count == 0 { break }
                read += count
            }
            guard read == body.count else { throw BenchError("\(path) has \(read) bytes, not \(body.count)") }
        }
    }
}
