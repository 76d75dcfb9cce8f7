import Larder
import LarderHTTP
import LarderSockets
import NIOCore

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// What goes to the client of a connection: passes bytes to the channel and knows what happened to them.
///
/// Answers are first written to ``Worker/output``, which the connections of an event loop share. Every way through a
/// connection begins with ``begin()`` and ends with ``send()`` or ``handOver(isTracked:)``, so that one client's bytes
/// never reach another. On the event loop only.
final class HTTP1Output {
    private let worker: Worker
    /// The channel's end of the connection; nil before and after its life.
    private(set) var context: ChannelHandlerContext?
    private var account = SendAccount()
    /// Nil where the channel has to see what is written.
    private var socket: SocketWriter?
    /// Something was handed to the channel and not flushed.
    private var hasUnflushed = false
    /// Whether the channel may hold something that the system has not taken.
    private var mayHold = false
    /// Writes under way that cost this connection no memory: of files, and of bodies that are shared.
    private var bulkWrites = 0
    /// Of these, bytes of bodies that are shared.
    private(set) var lentBytes = 0
    /// The files that are being written, and up to where.
    private var files: [(handle: NIOFileHandle, end: Int)] = []
    /// The gateway ends the connection, not the client.
    var isCutOff = false

    init(_ worker: Worker) { self.worker = worker }

    /// - Parameter isPlaintext: whether what is written goes to the socket as it is.
    func attach(_ context: ChannelHandlerContext, isPlaintext: Bool) {
        self.context = context
        socket = isPlaintext ? SocketWriter(context.channel) : nil
    }

    func detach() {
        context = nil
        socket = nil
    }

    /// Whether the client takes more at once.
    var isWritable: Bool { context?.channel.isWritable ?? false }

    // MARK: Writing

    /// Call it before anything is written. What another connection may have left behind is dropped: no answer is better
    /// than another client's.
    func begin() {
        guard worker.output.readableBytes > 0 else { return }
        assertionFailure("an answer was not handed over")
        worker.output.clear()
    }

    /// Makes what is held go out.
    func flush() {
        guard worker.output.readableBytes > 0 || hasUnflushed, let context else { return }
        send()
        guard hasUnflushed else { return }
        hasUnflushed = false
        context.flush()
    }

    /// Writes what is held to the socket where nothing is before it, and hands the channel what the system does not
    /// take.
    func send() {
        let count = worker.output.readableBytes
        if count > 0, count <= Self.sentAtOnce {
            let sent = worker.output.withUnsafeReadableBytes { sendAtOnce($0) }
            if sent == count { return worker.output.clear() }
            worker.output.moveReaderIndex(forwardBy: sent)
        }
        handOver()
    }

    /// Writes bytes to the socket where nothing is before them.
    /// - Returns: how many of them the system has taken.
    private func sendAtOnce(_ bytes: UnsafeRawBufferPointer) -> Int {
        sendAtOnce { $0.write(bytes) }
    }

    private func sendAtOnce(_ write: (SocketWriter) -> Int) -> Int {
        guard let socket, isChannelEmpty else { return 0 }
        let sent = write(socket)
        if sent > 0 {
            account.queue(sent)
            took(upTo: account.queued)
            worker.counters.bytesOut += UInt64(sent)
        }
        return sent
    }

    /// Up to this many bytes the buffer for them is of a size to keep.
    private static let sentAtOnce = 64 << 10

    private var isChannelEmpty: Bool {
        if mayHold { mayHold = hasUnflushed || pendingBytes > 0 }
        return !mayHold
    }

    /// Hands what is held to the channel.
    /// - Parameter isTracked: whether to hear when it has gone out.
    func handOver(isTracked: Bool = false) {
        let count = worker.output.readableBytes
        guard count > 0 else { return }
        guard let context else { return worker.output.clear() }
        let bytes = worker.takeOutput()
        countQueued(bytes.readableBytes)
        let data = NIOAny(IOData.byteBuffer(bytes))
        if isTracked { track(context.write(data)) } else { context.write(data, promise: nil) }
    }

    /// Writes a piece of content: of what the system takes at once it needs no copy.
    func write(piece: ArraySlice<UInt8>) {
        // What is held goes out with it, in one write of the channel.
        let sent = worker.output.readableBytes == 0 ? piece.withUnsafeBytes { sendAtOnce($0) } : 0
        if sent < piece.count { write(ByteBuffer(bytes: piece.dropFirst(sent))) }
    }

    /// Writes content that is lent for this call: only what the system does not take at once is copied.
    func write(lent content: UnsafeRawBufferPointer) {
        let held = worker.output.readableBytes
        let sent = worker.output.withUnsafeReadableBytes { head in sendAtOnce { $0.write(head, content) } }
        worker.output.moveReaderIndex(forwardBy: min(sent, held))
        if worker.output.readableBytes == 0 { worker.output.clear() }
        worker.output.writeBytes(UnsafeRawBufferPointer(rebasing: content.dropFirst(max(0, sent - held))))
    }

    /// Writes bytes as a buffer of their own.
    func write(_ bytes: ByteBuffer) {
        handOver()
        _ = hand(bytes)
    }

    /// Writes a body that is shared with other answers.
    func write(shared bytes: ByteBuffer, _ digest: Digest) {
        handOver()
        let count = bytes.readableBytes
        guard let write = hand(bytes) else { return }
        worker.lend(digest, count)
        lentBytes += count
        bulkWrites += 1
        write.assumeIsolated().whenComplete { _ in
            self.bulkWrites -= 1
            self.lentBytes -= count
            self.worker.takeBack(digest)
        }
    }

    /// Writes a range of stored bytes: a small one into the same write as the head, a large one by sendfile(2).
    func write(_ stored: StoredBytes, _ range: Range<Int64>) throws {
        if range.count > Self.smallFile, let descriptor = try stored.withFileDescriptor({ try $0.duplicate() }) {
            let handle = NIOFileHandle(_deprecatedTakingOwnershipOfDescriptor: descriptor.rawValue)
            handOver()
            // Closing a duplicate that was only read from cannot lose anything.
            guard let context else { return try handle.close() }
            let region = FileRegion(
                fileHandle: handle, readerIndex: Int(range.lowerBound), endIndex: Int(range.upperBound))
            countQueued(region.readableBytes)
            bulkWrites += 1
            files.append((handle, region.endIndex))
            let write = context.write(NIOAny(IOData.fileRegion(region)))
            track(write)
            write.assumeIsolated().whenComplete { _ in
                self.bulkWrites -= 1
                self.files.removeAll { $0.handle === handle }
                try? handle.close()
            }
        } else if case .complete(let body) = stored, range == 0..<body.length.bytes {
            try body.withBytes { span in
                _ = span.withUnsafeBytes { worker.output.writeBytes($0) }
            }
        } else {
            worker.output.writeBytes(try stored.bytes(in: range))
        }
    }

    /// Up to this many bytes of a file are read into one write with the head: that is less work than sendfile(2).
    static let smallFile: Int64 = 64 << 10

    /// Whether a file that is being written ends too early: sendfile(2) would be tried without end. Another process cut
    /// it off after it was opened.
    var hasShortFile: Bool {
        files.contains { file in
            var status = stat()
            let result = try? file.handle.withUnsafeFileDescriptor { fstat($0, &status) }
            return result == 0 && Int(status.st_size) < file.end
        }
    }

    /// Writes bytes of a tunnel, past the accounts of answers.
    func pass(_ bytes: ByteBuffer) {
        guard let context else { return }
        account.queue(bytes.readableBytes)
        worker.counters.bytesOut += UInt64(bytes.readableBytes)
        mayHold = true
        context.writeAndFlush(NIOAny(IOData.byteBuffer(bytes)), promise: nil)
    }

    private func hand(_ bytes: ByteBuffer) -> EventLoopFuture<Void>? {
        guard let context else { return nil }
        countQueued(bytes.readableBytes)
        let write = context.write(NIOAny(IOData.byteBuffer(bytes)))
        track(write)
        return write
    }

    private func countQueued(_ count: Int) {
        account.queue(count)
        worker.counters.bytesOut += UInt64(count)
        hasUnflushed = true
        mayHold = true
    }

    // MARK: What the client has taken

    /// Bytes handed to the system or the channel.
    var queuedBytes: Int64 { account.queued }

    /// Bytes that the channel holds because the system takes no more, those of files included.
    var pendingBytes: Int { context.map { SendQueue.pending($0.channel) } ?? 0 }

    /// Of ``pendingBytes``, those that cost memory. Behind a file, or a body that is shared, next to nothing waits: the
    /// channel has taken no more since.
    var heldBytes: Int { bulkWrites > 0 ? 0 : pendingBytes }

    /// Bytes that the system holds because the client's system has not acknowledged them.
    var unacknowledgedBytes: Int { context.map { SendQueue.unacknowledged($0.channel) } ?? 0 }

    /// Whether an answer has not gone out yet.
    var hasUnsent: Bool { account.hasUnsent }

    /// The first answer that has not gone out yet.
    var firstUnsent: RequestRecord? { account.firstUnsent }

    /// Counts and logs an answer: a small one now, a large one when its last byte has gone out.
    func answered(_ record: RequestRecord) {
        guard SendAccount.isLoggedLater(record), context != nil else { return worker.finished(record) }
        handOver(isTracked: true)
        if !account.keep(record) { worker.finished(record) }
    }

    /// Sees how far the client has come, while the channel can tell.
    func noteTaken() {
        // A closed channel holds nothing, whether or not the client took it.
        guard let context, context.channel.isActive else { return }
        account.note(pending: pendingBytes) { SendQueue.unacknowledged(context.channel) }
    }

    /// Counts and logs an answer that the end of the connection cuts off.
    func logCut(_ record: RequestRecord) {
        if !isCutOff { worker.counters.clientAborts += 1 }
        worker.finished(account.cut(record))
    }

    /// Counts and logs the complete answers that the end of the connection cuts off.
    func logUnsent() {
        for record in account.removeCut() {
            if !isCutOff { worker.counters.clientAborts += 1 }
            worker.finished(record)
        }
    }

    private func track(_ write: EventLoopFuture<Void>) {
        let end = account.queued
        write.assumeIsolated().whenSuccess { self.took(upTo: end) }
    }

    private func took(upTo end: Int64) {
        account.took(upTo: end)
        while let record = account.nextSent(upTo: end) { worker.finished(record) }
    }

    // MARK: Endings

    /// Runs `body` when everything is with the system.
    func whenWritten(_ body: @escaping () -> Void) {
        guard let context else { return }
        handOver()
        context.writeAndFlush(NIOAny(IOData.byteBuffer(ByteBuffer()))).assumeIsolated().whenComplete { _ in body() }
    }

    /// Makes the system reset the connection when it is closed, then runs `body`. False if it cannot.
    func whenResetting(_ body: @escaping () -> Void) -> Bool {
        guard let context, let isSet = context.channel.resetWhenClosed() else { return false }
        handOver()
        isSet.assumeIsolated().whenComplete { _ in body() }
        return true
    }

    /// Tells the client that nothing follows, then runs `body`: when all is with the system.
    func finish(_ body: @escaping () -> Void = {}) {
        guard let context else { return }
        context.close(mode: .output).assumeIsolated().whenComplete { _ in body() }
    }

    func close() { context?.close(promise: nil) }

    /// Closes at once, and drops what the client has not taken.
    func reset() { context?.channel.reset() }
}
