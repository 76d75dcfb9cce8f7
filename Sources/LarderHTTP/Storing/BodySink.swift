import Larder
import Locks

/// Where the bytes of a load are stored: in a body of their own, or in a part in progress, or first the one and then
/// the other. One load writes; readers read what was written, at any time.
enum BodySink: Sendable {
    case body(BodyWriter)
    case part(PartSink)
    case followable(FollowableSink)

    /// Takes the next bytes if that does not need the disk; false, having done nothing, if it does.
    func writeInMemory(_ piece: [UInt8]) throws -> Bool {
        switch self {
        case .body(let writer): try writer.writeInMemory(piece)
        case .part: false
        case .followable(let sink): try sink.part == nil && sink.writer.writeInMemory(piece)
        }
    }

    /// Takes the next pieces, on a thread that may wait for the disk.
    func write(_ pieces: [[UInt8]]) async throws {
        switch self {
        case .body(let writer): try await writer.write(pieces: pieces)
        case .part(let sink): for piece in pieces { try await sink.write(piece) }
        case .followable(let sink): try await sink.current.write(pieces)
        }
    }

    /// Whether each piece is written as it comes: to a part, which other processes may follow.
    var writesAtOnce: Bool {
        switch self {
        case .body: false
        case .part: true
        case .followable(let sink): sink.part != nil
        }
    }

    /// Bytes that were written, counted from the first that this load wrote.
    func bytes(in range: Range<Int64>) async throws -> [UInt8] {
        switch self {
        case .body(let writer): try await writer.bytes(in: range)
        case .part(let sink): try await sink.bytes(in: range)
        case .followable(let sink): try await sink.current.bytes(in: range)
        }
    }
}

/// Takes a whole response that other processes may wait for: into a body of its own, which costs least, and once it
/// turns out to be long or slow into a part in progress, where they can follow it.
final class FollowableSink: Sendable {
    /// Readers may still be reading what it has when the bytes are in the part.
    let writer: BodyWriter
    private let shown = Mutex<PartSink?>(nil)

    init(_ writer: BodyWriter) { self.writer = writer }

    /// The part, once there is one.
    var part: PartSink? { shown.withLock { $0 } }

    fileprivate var current: BodySink { part.map { .part($0) } ?? .body(writer) }

    /// Moves the bytes that have come to a part, which gets the further ones. Not during a write.
    /// - Parameter count: how many have come.
    func move(_ count: Int64, to part: PartSink) async throws {
        try await part.copy(count, from: writer)
        shown.withLock { $0 = part }
    }
}

/// Writes the bytes of a load at their positions in a part in progress, which is opened when the first come: until then
/// the answer does not wait for the store.
final class PartSink: Sendable {
    private struct State {
        var part: PartWriters.Part?
        var isReleased = false
        var written: Int64 = 0
    }

    private let store: Store
    /// The positions of the bytes.
    private let range: Range<Int64>
    private let open: @Sendable () throws -> PartWriters.Part
    private let state = Mutex(State())

    init(_ store: Store, _ range: Range<Int64>, open: @escaping @Sendable () throws -> PartWriters.Part) {
        self.store = store
        self.range = range
        self.open = open
    }

    /// The part, once there are bytes.
    var part: PartWriters.Part? { state.withLock { $0.part } }

    /// The part, for the caller to release it; nil if there is none, or another call had it. Readers may continue.
    func partToRelease() -> PartWriters.Part? {
        state.withLock { state in
            defer { state.isReleased = true }
            return state.isReleased ? nil : state.part
        }
    }

    fileprivate func write(_ piece: [UInt8]) async throws {
        try await store.performShort { [self] in
            let part: PartWriters.Part
            if let known = self.part {
                part = known
            } else {
                part = try open()
                state.withLock { $0.part = part }
            }
            let position = range.lowerBound + state.withLock { $0.written }
            guard Int64(piece.count) <= range.upperBound - position else { throw SurplusContent() }
            try part.write(piece, at: position)
            state.withLock { $0.written += Int64(piece.count) }
        }
    }

    /// Writes the first bytes of a body.
    func copy(_ count: Int64, from writer: BodyWriter) async throws {
        var offset: Int64 = 0
        while offset < count {
            let piece = try await writer.bytes(in: offset..<min(offset + 256 << 10, count))
            guard !piece.isEmpty else { throw MissingContent() }
            try await write(piece)
            offset += Int64(piece.count)
        }
    }

    fileprivate func bytes(in wanted: Range<Int64>) async throws -> [UInt8] {
        guard let part = self.part else { return [] }
        let first = range.lowerBound
        return try await store.performShort {
            try part.writer.bytes(in: (first + wanted.lowerBound)..<(first + wanted.upperBound))
        }
    }
}

/// A transport brought more than it said: no position can be relied on.
struct SurplusContent: Error {}

/// Fewer bytes were written than have come.
struct MissingContent: Error {}
