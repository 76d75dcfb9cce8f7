import Larder
import NIOCore

/// The requests of one ccache process, one after another.
struct HelperSession {
    /// What the client wants after its last request.
    enum End {
        case leave
        case stop
    }

    /// A larger value is a mistake: ccache stores what one compilation brought.
    private static let limit: UInt64 = 4 << 30
    private static let pieceLength: Int64 = 256 << 10

    private enum Status: UInt8 {
        case ok = 0
        case noop = 1
        case error = 2
    }

    private let store: Store
    private var input: HelperInput
    private let output: NIOAsyncChannelOutboundWriter<ByteBuffer>

    init(store: Store, input: HelperInput, output: NIOAsyncChannelOutboundWriter<ByteBuffer>) {
        self.store = store
        self.input = input
        self.output = output
    }

    mutating func run() async throws -> End {
        // Version 1; get, put and remove; info.
        try await write([1, 2, 0, 1])
        while let request = try await input.byte() {
            switch request {
            case 0: try await get()
            case 1: try await put()
            case 2: try await remove()
            case 3:
                try await write([Status.ok.rawValue])
                return .stop
            case 4: try await write(Self.text("larder (\(Cachectl.configuration.version))") + [0])
            default:
                // Where the next request begins is not known.
                try await write([Status.error.rawValue] + Self.text("unknown request \(request)"))
                return .leave
            }
        }
        return .leave
    }

    private mutating func key() async throws -> Key {
        let length = try await input.bytes(1)[0]
        let bytes = try await input.bytes(Int(length))
        // As ccache writes its keys in paths of HTTP.
        return Key("ccache/" + bytes.map { $0 < 16 ? "0" + String($0, radix: 16) : String($0, radix: 16) }.joined())
    }

    private mutating func get() async throws {
        let key = try await key()
        let body: Body
        do {
            guard let entry = try await store.get(key) else { return try await write([Status.noop.rawValue]) }
            body = entry.body
        } catch {
            return try await report(error)
        }
        let length = body.length.bytes
        var offset = min(length, Self.pieceLength)
        let first: [UInt8]
        do { first = try await body.bytes(in: 0..<offset) } catch { return try await report(error) }
        try await write([Status.ok.rawValue] + withUnsafeBytes(of: UInt64(length)) { Array($0) } + first)
        while offset < length {
            let end = min(length, offset + Self.pieceLength)
            // After the length no error can be reported: the client sees a connection that ends early.
            try await write(try await body.bytes(in: offset..<end))
            offset = end
        }
    }

    private mutating func put() async throws {
        let key = try await key()
        let overwrites = try await input.bytes(1)[0] & 1 == 1
        let length = try await input.bytes(8).withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
        guard length <= Self.limit else {
            try await write([Status.error.rawValue] + Self.text("the value is too large"))
            throw HelperInput.Incomplete()
        }
        var failure: (any Error)?
        var writer: BodyWriter?
        do {
            let isThere = try store.contains(key)
            if overwrites || !isThere {
                writer = try store.writer(for: key, length: ByteCount(Int64(length)))
            }
        } catch {
            failure = error
        }
        // What cannot be stored is read all the same: the next request follows it.
        var rest = Int(length)
        while rest > 0 {
            let piece: [UInt8]
            do {
                piece = try await input.piece(atMost: min(rest, Int(Self.pieceLength)))
            } catch {
                writer?.cancel()
                throw error
            }
            rest -= piece.count
            guard failure == nil else { continue }
            do { try await writer?.write(piece) } catch { failure = error }
        }
        if let failure {
            writer?.cancel()
            return try await report(failure)
        }
        do {
            _ = try await writer?.commit()
        } catch {
            return try await report(error)
        }
        try await write([(writer == nil ? Status.noop : .ok).rawValue])
    }

    private mutating func remove() async throws {
        let key = try await key()
        do {
            let isRemoved = try await store.remove(key)
            try await write([(isRemoved ? Status.ok : .noop).rawValue])
        } catch {
            try await report(error)
        }
    }

    private func report(_ error: any Error) async throws {
        try await write([Status.error.rawValue] + Self.text("\(error)"))
    }

    private func write(_ bytes: [UInt8]) async throws { try await output.write(ByteBuffer(bytes: bytes)) }

    /// A length in one byte, and as much of a text.
    private static func text(_ text: String) -> [UInt8] {
        var bytes = Array(text.utf8.prefix(255))
        // Not in the middle of a character.
        while !bytes.isEmpty, String(validating: bytes, as: UTF8.self) == nil { bytes.removeLast() }
        return [UInt8(bytes.count)] + bytes
    }
}
