import Larder

/// Encrypted bytes are decrypted before an answer is given, if there are not too many of them, so that damage makes a
/// miss.
extension ResponseBody {
    /// The most that is decrypted on an event loop, in bytes.
    private static let longestAtOnce: Int64 = 64 << 10
    /// The most that is decrypted before the answer, in bytes. What is longer is decrypted as the client takes it.
    private static let longestFirst: Int64 = 1 << 20

    var isDecryptedFirst: Bool { (1...Self.longestFirst).contains(encryptedCount) }

    var isDecryptedAtOnce: Bool { encryptedCount <= Self.longestAtOnce }

    /// Bytes in encrypted files.
    private var encryptedCount: Int64 {
        guard case .segments(let segments) = source else { return 0 }
        return segments.reduce(0) { $0 + ($1.isEncrypted ? $1.count : 0) }
    }

    /// With all bytes of encrypted files in memory.
    /// - Throws: `LarderError`: `io`, `corruption`.
    func decrypted() throws -> ResponseBody {
        guard case .segments(let segments) = source else { return self }
        return ResponseBody(try segments.map { $0.isEncrypted ? .bytes(try $0.bytes()) : $0 })
    }

    /// As above; the cooperative pool does not wait.
    func decrypted() async throws -> ResponseBody {
        guard case .segments(var segments) = source else { return self }
        for (index, segment) in segments.enumerated() where segment.isEncrypted {
            segments[index] = .bytes(try await segment.bytes())
        }
        return ResponseBody(segments)
    }
}

extension ResponseBody.Segment {
    fileprivate var isEncrypted: Bool {
        switch self {
        case .bytes: false
        case .stored(.complete(let body), _): body.isEncrypted
        case .stored(.inProgress(let body), _): body.isEncrypted
        }
    }

    fileprivate func bytes() throws -> [UInt8] {
        switch self {
        case .bytes(let bytes): bytes
        case .stored(let stored, let range): try stored.bytes(in: range)
        }
    }

    fileprivate func bytes() async throws -> [UInt8] {
        switch self {
        case .bytes(let bytes): bytes
        case .stored(let stored, let range): try await stored.bytes(in: range)
        }
    }
}
