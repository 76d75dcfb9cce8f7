import Larder
import Locks

/// A body while it arrives: one load appends, any number of readers follow at their own pace.
///
/// While the body is stored, readers that keep up get the pieces as they came, and others read what the store's writer
/// has: memory for a small body, its file for a large one. So a slow reader does not hold up the others, and memory
/// stays bounded whatever the length. Pieces that come fast wait for each other, and go to the file ``batchBytes`` at a
/// time. A body that is not stored, or no longer because storing failed, goes through a window of ``window`` bytes, and
/// the slowest reader sets the pace.
final class Spool: Sendable {
    /// The most bytes of a body that is not stored that wait for readers. 64 KiB.
    static let window: Int64 = 64 * 1024
    /// The most that a reader gets at once, in bytes: each of many readers has a piece in memory.
    private static let pieceBytes: Int64 = 64 * 1024
    /// What the tasks of a load take up in addition to its bytes: 105 KB measured, in a release build for x86-64.
    static let fixedBytes = 104 << 10
    /// How much of a body that comes fast is written to its file at a time: each write takes two changes of thread.
    static let batchBytes = 256 << 10
    /// From this size on a piece is taken to come fast. What comes slowly would wait in memory for long.
    static let fastPieceBytes = 32 << 10
    /// The most pieces in memory of which the writer has the first.
    private static let keptPieces = 16

    private struct State {
        /// Bytes before this position are in the writer, those from it on in `tail`.
        var tailStart: Int64 = 0
        var tail: [[UInt8]] = []
        /// Bytes in `tail`.
        var tailBytes = 0
        /// How many of its first pieces the writer has, too: readers that keep up need not read the file.
        var writtenPieces = 0
        /// Bytes in its other pieces.
        var unwrittenBytes = 0
        /// Bytes that the writer has in memory.
        var writerBytes = 0
        /// Where the bytes that readers may see end.
        var end: Int64 = 0
        var isStoring: Bool
        var storingFailure: (any Error)?
        var ending: Result<Void, FetchError>?
        var positions: [Int: Int64] = [:]
        /// Where readers of a range stop.
        var limits: [Int: Int64] = [:]
        var nextReader = 0
        var waitingReaders: [Int: CheckedContinuation<Void, Never>] = [:]
        var waitingLoad: CheckedContinuation<Void, Never>?
        var isAbandoned = false
        /// True if it continues after the last reader has left; its place then has to be given back.
        var isOrphan = false
        /// True if it continues without readers.
        var isDetached: Bool
        /// The tasks that a change allows to continue, once the lock is free.
        var woken: [CheckedContinuation<Void, Never>] = []

        /// Where the bytes that have come end.
        var received: Int64 { tailStart + Int64(tailBytes) }
        /// Of `tail`, the pieces that wait for the writer.
        var unwritten: [[UInt8]] { Array(tail[writtenPieces...]) }

        mutating func add(_ piece: [UInt8]) {
            tail.append(piece)
            tailBytes += piece.count
            unwrittenBytes += piece.count
        }

        /// The writer has all of `tail`.
        mutating func markWritten() {
            writerBytes = 0
            writtenPieces = tail.count
            unwrittenBytes = 0
        }

        mutating func dropFirst() {
            let count = tail.removeFirst().count
            tailStart += Int64(count)
            tailBytes -= count
            if writtenPieces > 0 { writtenPieces -= 1 } else { unwrittenBytes -= count }
        }

        mutating func wakeReaders() {
            guard !waitingReaders.isEmpty else { return }
            woken += waitingReaders.values
            waitingReaders = [:]
        }

        mutating func wakeLoad() {
            if let waitingLoad { woken.append(waitingLoad) }
            waitingLoad = nil
        }
    }

    /// The exact length, where it is known.
    let length: Int64?
    /// Where the bytes go that are stored; nil for a body that is not.
    let sink: BodySink?
    /// Decides whether it continues without readers; nil: it does not.
    private let abandoned: AbandonedLoads?
    /// A rest of its bytes that is of use to others.
    private let usefulRest: Int64
    /// Whether other processes may follow it, and could not continue it.
    private let isIndispensable: @Sendable () -> Bool
    private let onAbandon: @Sendable () -> Void
    private let state: Mutex<State>
    private let share: HeldBytes.Share

    /// - Parameters:
    ///   - held: counts what is in memory.
    ///   - onAbandon: called once when the last reader leaves before the end.
    init(
        length: Int64?, sink: BodySink?, isDetached: Bool, held: HeldBytes, abandoned: AbandonedLoads? = nil,
        usefulRest: Int64 = 0, isIndispensable: @escaping @Sendable () -> Bool = { false },
        onAbandon: @escaping @Sendable () -> Void
    ) {
        share = HeldBytes.Share(of: held)
        share.set(Self.fixedBytes)
        self.length = length
        self.sink = sink
        self.abandoned = abandoned
        self.usefulRest = usefulRest
        self.isIndispensable = isIndispensable
        self.onAbandon = onAbandon
        state = Mutex(State(isStoring: sink != nil, isDetached: isDetached))
    }

    /// Changes the state, then wakes the tasks that the change allows to continue.
    ///
    /// Never with the lock held: resuming a task takes the lock of its status, and a thread that cancels the task holds
    /// that one while it runs the cancellation handler, which waits for this one.
    private func change<R: Sendable>(_ body: (inout State) -> R) -> R {
        let (result, woken) = state.withLock { state in
            let result = body(&state)
            let woken = state.woken
            if !woken.isEmpty { state.woken = [] }
            return (result, woken)
        }
        for continuation in woken { continuation.resume() }
        return result
    }

    // MARK: The load's side

    var isStoring: Bool { state.withLock { $0.isStoring } }
    /// Why it is no longer stored.
    var storingFailure: (any Error)? { state.withLock { $0.storingFailure } }
    var isAbandoned: Bool { state.withLock { $0.isAbandoned } }

    /// Takes a piece, and waits for the disk, or while readers of a body that is not stored are behind.
    /// - Parameter isShown: false keeps it from readers until ``show()``.
    func append(_ piece: [UInt8], isShown: Bool = true) async {
        if let sink, isStoring {
            do {
                if try appendInMemory(piece, to: sink, isShown) { return }
            } catch {
                stopStoring(error)
            }
        }
        // Of a part readers get what is stored: a purge by another process finds it, too.
        let writesAtOnce = sink?.writesAtOnce ?? false
        let mayWait = change { state in
            for short in Self.shortPieces(of: piece) { state.add(short) }
            if isShown, !(writesAtOnce && state.isStoring) { Self.show(&state) }
            trim(&state)
            return state.isStoring && !writesAtOnce && piece.count >= Self.fastPieceBytes
                && state.unwrittenBytes < Self.batchBytes
        }
        if mayWait { return }
        let isWritten = await writeOut()
        if isShown, writesAtOnce { show() }
        if !isWritten { await waitForRoom() }
    }

    /// A piece of most transports is short.
    private static func shortPieces(of piece: [UInt8]) -> [[UInt8]] {
        let length = Int(pieceBytes)
        if piece.count <= length { return [piece] }
        return stride(from: 0, to: piece.count, by: length).map { Array(piece[$0..<min($0 + length, piece.count)]) }
    }

    /// Takes a piece if the writer keeps all of it in memory.
    private func appendInMemory(_ piece: [UInt8], to sink: BodySink, _ isShown: Bool) throws -> Bool {
        guard state.withLock({ $0.unwrittenBytes == 0 }), try sink.writeInMemory(piece) else { return false }
        change { state in
            state.tailStart += Int64(piece.count)
            state.writerBytes = Int(state.tailStart)
            count(state)
            if isShown { Self.show(&state) }
        }
        return true
    }

    /// Hands the writer what waits for it. Not while a piece is appended.
    /// - Returns: false if the body is not stored, or no longer.
    func writeOut() async -> Bool {
        let pieces = state.withLock { $0.isStoring ? $0.unwritten : nil }
        guard let sink, let pieces else { return false }
        if pieces.isEmpty { return true }
        do {
            // On a thread that may wait for the disk and for room.
            try await sink.write(pieces)
        } catch {
            stopStoring(error)
            return false
        }
        change { state in
            state.markWritten()
            trim(&state)
        }
        return true
    }

    /// Readers still get everything: what the writer has, then the window.
    private func stopStoring(_ error: any Error) {
        change { state in
            state.isStoring = false
            state.storingFailure = error
            if state.isDetached, state.positions.isEmpty { state.isAbandoned = true }
            trim(&state)
        }
    }

    /// Lets readers see everything that was appended.
    func show() { change { Self.show(&$0) } }

    private static func show(_ state: inout State) {
        state.end = state.received
        state.wakeReaders()
    }

    private func count(_ state: State) {
        let fixedBytes = state.ending == nil ? Self.fixedBytes : 0
        share.set(fixedBytes + state.writerBytes + state.tailBytes)
    }

    private func waitForRoom() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                change { state in
                    state.waitingLoad = continuation
                    trim(&state)
                    if Self.hasRoom(state) || Task.isCancelled { state.wakeLoad() }
                }
            }
        } onCancel: {
            change { $0.wakeLoad() }
        }
    }

    private static func hasRoom(_ state: State) -> Bool {
        state.isAbandoned || state.end - state.tailStart <= window
    }

    /// Drops what no reader waits for in memory.
    private func trim(_ state: inout State) {
        while let first = state.tail.first, !isKept(first, state) { state.dropFirst() }
        count(state)
        if Self.hasRoom(state) { state.wakeLoad() }
    }

    /// Whether the first piece in memory is kept there.
    private func isKept(_ first: [UInt8], _ state: State) -> Bool {
        guard state.isStoring else {
            // Until every reader has it.
            let slowest = state.positions.values.min() ?? (state.isDetached || state.isAbandoned ? state.end : 0)
            return state.tailStart + Int64(first.count) > slowest
        }
        if state.writtenPieces == 0 { return true }
        // A client that stalls takes no memory after the end.
        if state.ending != nil { return false }
        return state.tailBytes <= Self.batchBytes && state.tail.count <= Self.keptPieces
            && state.positions.contains { id, position in
                position == state.tailStart && position < state.limits[id] ?? .max
            }
    }

    /// Ends the body: properly, or with an error after the bytes that came.
    func finish(_ ending: Result<Void, FetchError>) {
        let isOrphan = change { state in
            state.ending = ending
            Self.show(&state)
            trim(&state)
            return state.isOrphan
        }
        if isOrphan { abandoned?.release() }
    }

    // MARK: The readers' side

    /// A reader of a range, from the first byte if none is given; nil when the first bytes are gone.
    func makeReader(_ range: Range<Int64>? = nil) -> SpoolReader? {
        let id: Int? = state.withLock { state in
            // What the writer has stays; what went through the window alone does not.
            if sink == nil, state.tailStart > 0 { return nil }
            if state.isAbandoned { return nil }
            if !state.isStoring, sink != nil { return nil }
            state.nextReader += 1
            state.positions[state.nextReader] = range?.lowerBound ?? 0
            state.limits[state.nextReader] = range?.upperBound
            return state.nextReader
        }
        return id.map { SpoolReader(spool: self, id: $0) }
    }

    fileprivate func next(_ id: Int) async throws -> [UInt8]? {
        while true {
            try Task.checkCancellation()
            enum Step: Sendable {
                case stored(Range<Int64>)
                case piece([UInt8])
                case end
                case failed(FetchError)
                case wait
            }
            let step: Step = change { state in
                guard let position = state.positions[id] else { return .end }
                let limit = state.limits[id] ?? .max
                if position >= limit { return .end }
                if position < state.end {
                    if position < state.tailStart {
                        return .stored(position..<min(position + Self.pieceBytes, state.tailStart, state.end, limit))
                    }
                    var start = state.tailStart
                    for piece in state.tail {
                        let end = start + Int64(piece.count)
                        if position < end {
                            state.positions[id] = end
                            trim(&state)
                            let isWhole = position == start && end <= limit
                            return .piece(
                                isWhole ? piece : Array(piece[Int(position - start)..<Int(min(end, limit) - start)]))
                        }
                        start = end
                    }
                }
                switch state.ending {
                case .success: return .end
                case .failure(let error): return .failed(error)
                case nil: return .wait
                }
            }
            switch step {
            case .end: return nil
            case .failed(let error): throw error
            case .piece(let piece): return piece
            case .stored(let range):
                let bytes = try await sink?.bytes(in: range) ?? []
                guard bytes.count == range.count else {
                    throw FetchError(.origin, url: "", "the stored part of the body could not be read back")
                }
                change { state in
                    state.positions[id] = range.upperBound
                    trim(&state)
                }
                return bytes
            case .wait: await wait(id)
            }
        }
    }

    private func wait(_ id: Int) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                change { state in
                    let isBehind = state.positions[id].map { $0 < state.end } ?? true
                    if isBehind || state.ending != nil || Task.isCancelled {
                        state.woken.append(continuation)
                    } else {
                        state.waitingReaders[id] = continuation
                    }
                }
            }
        } onCancel: {
            change { state in
                if let reader = state.waitingReaders.removeValue(forKey: id) { state.woken.append(reader) }
            }
        }
    }

    fileprivate func leave(_ id: Int) {
        let isLast = change { state in
            state.positions[id] = nil
            state.limits[id] = nil
            trim(&state)
            // Without readers it continues only for the store.
            guard state.positions.isEmpty, !(state.isDetached && state.isStoring), state.ending == nil else {
                return false
            }
            if state.isStoring,
                abandoned?.takes(
                    length: length, received: state.received, usefulRest: usefulRest,
                    isIndispensable: isIndispensable()) == true
            {
                state.isDetached = true
                state.isOrphan = true
                return false
            }
            state.isAbandoned = true
            state.wakeLoad()
            return true
        }
        if isLast { onAbandon() }
    }
}

/// One reader of a ``Spool``; leaves when its last reference is dropped.
final class SpoolReader: Sendable {
    let spool: Spool
    private let id: Int

    init(spool: Spool, id: Int) {
        self.spool = spool
        self.id = id
    }

    deinit { spool.leave(id) }

    /// The next piece; nil at the end.
    func next() async throws -> [UInt8]? { try await spool.next(id) }
}
