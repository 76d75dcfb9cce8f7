import Larder
import LarderHTTP
import NIOCore
import Locks

/// What is still to be sent of an answer, with as little of it in memory as its source allows.
struct HTTP2Content {
    /// Bytes in memory.
    struct Run {
        fileprivate enum Bytes {
            case own([UInt8])
            case shared(ByteBuffer)
        }

        fileprivate let bytes: Bytes
        fileprivate var left: Range<Int>

        /// Bytes of memory that only this answer needs.
        fileprivate var memory: Int64 { if case .own(let bytes) = bytes { Int64(bytes.count) } else { 0 } }

        var count: Int { left.count }

        func withBytes(_ body: (UnsafeRawBufferPointer) -> Void) {
            switch bytes {
            case .own(let bytes): bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[left])) }
            case .shared(let bytes):
                bytes.withUnsafeReadableBytes { body(UnsafeRawBufferPointer(rebasing: $0[left])) }
            }
        }
    }

    /// A body in memory that other answers send, too.
    struct Shared {
        let digest: Digest
        let count: Int
    }

    private var runs = CircularBuffer<Run>()
    /// Bytes of memory that the runs take.
    private(set) var memory: Int64 = 0
    /// Where the rest comes from; nil when it is being read, or there is none.
    var source: ResponseBody?
    /// Nothing follows.
    var isComplete = false
    /// What an open file counts as, in bytes: a connection must not take all descriptors of the process either.
    private(set) var fileCost: Int64 = 0

    /// Whether there is nothing to send at once.
    var isEmpty: Bool { runs.isEmpty }

    /// What it shares with other answers.
    let shared: Shared?

    /// Nothing yet.
    init() { shared = nil }

    /// A part of a body in memory.
    init(_ part: ByteBuffer, sharedAs digest: Digest) {
        shared = Shared(digest: digest, count: part.readableBytes)
        runs.append(Run(bytes: .shared(part), left: 0..<part.readableBytes))
        isComplete = true
    }

    /// Bytes in memory.
    init(_ bytes: [UInt8]) {
        shared = nil
        append(bytes)
        isComplete = true
    }

    /// A response's content. What is in files is read when the client takes it.
    init(_ body: ResponseBody) throws {
        shared = nil
        guard case .segments(let segments) = body.source else {
            source = body
            return
        }
        guard !segments.contains(where: { $0.isFile || $0.isDecodedLater }) else {
            source = ResponseBody(length: body.length, live: Self.pieces(of: segments))
            fileCost = Self.costOfFile
            return
        }
        for segment in segments {
            switch segment {
            case .bytes(let bytes): append(bytes)
            case .stored(.complete(let body), let range):
                append(try body.bytes(), range.clamped(to: 0..<body.length.bytes))
            case .stored(let stored, let range): append(try stored.bytes(in: range))
            }
        }
        isComplete = true
    }

    private static let costOfFile: Int64 = 16 << 10
    /// What is read from a file at once.
    private static let pieceSize: Int64 = 64 << 10

    mutating func append(_ bytes: [UInt8]) { append(bytes, 0..<Int64(bytes.count)) }

    private mutating func append(_ bytes: [UInt8], _ range: Range<Int64>) {
        guard !range.isEmpty else { return }
        runs.append(Run(bytes: .own(bytes), left: Int(range.lowerBound)..<Int(range.upperBound)))
        memory += Int64(bytes.count)
    }

    /// The next bytes, at most `limit` of them; nil where there are none.
    mutating func next(_ limit: Int) -> Run? {
        guard limit > 0, var run = runs.first else { return nil }
        let part = run.left.prefix(limit)
        if part.upperBound < run.left.upperBound {
            runs[runs.startIndex].left = part.upperBound..<run.left.upperBound
        } else {
            runs.removeFirst()
            memory -= run.memory
        }
        run.left = part
        return run
    }

    /// Lets go of everything.
    mutating func drop() { self = HTTP2Content() }

    private static func pieces(of segments: [ResponseBody.Segment]) -> @Sendable () async throws -> [UInt8]? {
        let place = Mutex((segment: 0, offset: Int64(0)))
        return {
            let next = place.withLock { place -> (ResponseBody.Segment, Range<Int64>)? in
                while place.segment < segments.count, place.offset >= segments[place.segment].count {
                    place = (place.segment + 1, 0)
                }
                guard place.segment < segments.count else { return nil }
                let segment = segments[place.segment]
                let range = place.offset..<min(place.offset + Self.pieceSize, segment.count)
                place.offset = range.upperBound
                return (segment, range)
            }
            switch next {
            case nil: return nil
            case (.bytes(let bytes), let range)?: return Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
            case (.stored(let stored, let whole), let range)?:
                return try await stored.bytes(
                    in: whole.lowerBound + range.lowerBound..<whole.lowerBound + range.upperBound)
            }
        }
    }
}

extension ResponseBody.Segment {
    /// Whether it is in a file.
    fileprivate var isFile: Bool {
        guard case .stored(let stored, _) = self else { return false }
        return stored.withFileDescriptor { _ in true } ?? false
    }
}
