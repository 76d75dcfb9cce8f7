import BuildMessages
import GRPCCore
import GRPCProtobuf
import Larder
import LarderObjects
import SwiftProtobuf

private typealias ReadRequest = Google_Bytestream_ReadRequest
private typealias WriteRequest = Google_Bytestream_WriteRequest
private typealias WriteResponse = Google_Bytestream_WriteResponse
private typealias StatusRequest = Google_Bytestream_QueryWriteStatusRequest
private typealias StatusResponse = Google_Bytestream_QueryWriteStatusResponse

/// Blobs as streams of bytes, that can be continued.
struct ByteStreamService: RegistrableRPCService {
    let context: CallContext

    private static let name = "google.bytestream.ByteStream"

    func registerMethods<Transport>(with router: inout RPCRouter<Transport>) where Transport: ServerTransport {
        router.registerHandler(
            forMethod: MethodDescriptor(fullyQualifiedService: Self.name, method: "Read"),
            deserializer: ShapedDeserializer<ReadRequest>(.plain), serializer: PieceSerializer()
        ) { request, _ in
            do {
                let request = try await ServerRequest(stream: request)
                return try await read(request.message, request.metadata)
            } catch {
                throw context.status(of: error, isReading: true)
            }
        }
        router.registerHandler(
            forMethod: MethodDescriptor(fullyQualifiedService: Self.name, method: "Write"),
            deserializer: ShapedDeserializer<WriteRequest>(.plain), serializer: ProtobufSerializer<WriteResponse>()
        ) { request, _ in
            do {
                let size = try await write(request.messages, request.metadata)
                return StreamingServerResponse(
                    single: ServerResponse(message: WriteResponse.with { $0.committedSize = size }))
            } catch {
                throw context.status(of: error, isReading: false)
            }
        }
        router.unary(Self.name, "QueryWriteStatus", context, .plain, isReading: true) {
            (request: StatusRequest, metadata) in
            try await status(request, metadata)
        }
    }

    // MARK: Reading

    private func read(
        _ request: ReadRequest, _ metadata: Metadata
    ) async throws -> StreamingServerResponse<[UInt8]> {
        let name = try ResourceName.parse(request.resourceName, isUpload: false)
        _ = try context.admit(metadata, .read, name.instance, "cas")
        guard request.readOffset >= 0, request.readOffset <= name.length else {
            throw RPCError(code: .outOfRange, message: "The blob has \(name.length) bytes.")
        }
        guard request.readLimit >= 0 else {
            throw RPCError(code: .invalidArgument, message: "A limit is 0 or more.")
        }
        if name.digest == ObjectStore.empty { return StreamingServerResponse { _ in [:] } }
        guard let body = try await context.objects.blob(name.digest)?.body, body.length.bytes == name.length else {
            context.objects.counters.misses.add(1, ordering: .relaxed)
            throw RPCError(code: .notFound, message: "There is no such blob.")
        }
        context.objects.counters.hits.add(1, ordering: .relaxed)
        let rest = name.length - request.readOffset
        let end = request.readOffset + (request.readLimit > 0 ? min(request.readLimit, rest) : rest)
        let start = request.readOffset
        return StreamingServerResponse { writer in
            var offset = start
            while offset < end {
                let next = min(end, offset + Limits.piece)
                do {
                    let piece = try await body.bytes(in: offset..<next)
                    try await writer.write(piece)
                } catch {
                    throw context.status(of: error, isReading: true)
                }
                offset = next
            }
            return [:]
        }
    }

    // MARK: Writing

    private func write(
        _ messages: RPCAsyncSequence<WriteRequest, any Error>, _ metadata: Metadata
    ) async throws -> Int64 {
        var messages = messages.makeAsyncIterator()
        guard let first = try await messages.next() else {
            throw RPCError(code: .invalidArgument, message: "The upload has no message.")
        }
        let name = try ResourceName.parse(first.resourceName, isUpload: true)
        let caller = try context.admit(metadata, .write, name.instance, "cas")
        guard name.length <= context.service.largestObject else {
            throw RPCError(
                code: .invalidArgument, message: "An object has at most \(context.service.largestObject) bytes.")
        }
        // What is there need not be sent, and stays for the client that counts on it.
        if try await context.objects.missing(of: [name.digest]).isEmpty {
            let length = try await context.objects.blob(name.digest)?.body.length.bytes
            guard name.digest == ObjectStore.empty || length == name.length else {
                throw RPCError(code: .invalidArgument, message: "The blob does not have the length in its name.")
            }
            return name.length
        }

        let key = SuspendedUploads.Name(user: caller.user, resource: first.resourceName)
        var (writer, offset) = try await begin(name, key, caller, at: first.writeOffset)
        var message = first
        do {
            while true {
                guard message.resourceName.isEmpty || message.resourceName == first.resourceName else {
                    throw RPCError(code: .invalidArgument, message: "One call uploads one blob.")
                }
                guard message.writeOffset == offset else {
                    throw RPCError(
                        code: .invalidArgument,
                        message: "The upload continues at \(offset), not at \(message.writeOffset).")
                }
                guard Int64(message.data.count) <= name.length - offset else {
                    throw RPCError(code: .invalidArgument, message: "The blob has more than its \(name.length) bytes.")
                }
                if !message.data.isEmpty {
                    try await writer.write(message.data)
                    offset += Int64(message.data.count)
                }
                if message.finishWrite { break }
                guard let next = try await messages.next() else {
                    // All is there, and the client forgot to say so; or it may continue in another call.
                    if offset == name.length { break }
                    keep(writer, at: offset, as: key)
                    return offset
                }
                message = next
            }
            guard offset == name.length else {
                throw RPCError(
                    code: .invalidArgument, message: "The blob ends after \(offset) of its \(name.length) bytes.")
            }
            _ = try await writer.commit()
        } catch let error where Self.isInterruption(error) {
            keep(writer, at: offset, as: key)
            throw error
        } catch {
            writer.cancel()
            throw error
        }
        try await context.objects.keep(name.digest)
        context.objects.counters.uploads.add(1, ordering: .relaxed)
        return name.length
    }

    private func keep(_ writer: BodyWriter, at offset: Int64, as key: SuspendedUploads.Name) {
        let budget = (try? context.objects.store.budget().bytes) ?? .unlimited
        context.uploads.keep(writer, at: offset, as: key, within: budget)
    }

    /// A new upload, or one that broke off.
    private func begin(
        _ name: ResourceName, _ key: SuspendedUploads.Name, _ caller: Caller, at offset: Int64
    ) async throws -> (BodyWriter, Int64) {
        if offset == 0 {
            context.uploads.take(key)?.writer.cancel()
            let options = await context.objects.waiting(caller.options)
            let writer = try context.objects.store.writerByContent(
                options, length: ByteCount(name.length), digest: name.digest)
            return (writer, 0)
        }
        guard let upload = context.uploads.take(key) else {
            throw RPCError(code: .invalidArgument, message: "No upload of this name can be continued: begin at 0.")
        }
        guard upload.offset == offset else {
            keep(upload.writer, at: upload.offset, as: key)
            throw RPCError(
                code: .invalidArgument, message: "The upload continues at \(upload.offset), not at \(offset).")
        }
        return (upload.writer, offset)
    }

    /// The connection is gone, or the client gave the call up: not the fault of what was sent.
    private static func isInterruption(_ error: any Error) -> Bool {
        if error is CancellationError { return true }
        if error is LarderError { return false }
        guard let error = error as? RPCError else { return true }
        return error.code == .unavailable || error.code == .cancelled
    }

    private func status(_ request: StatusRequest, _ metadata: Metadata) async throws -> StatusResponse {
        let name = try ResourceName.parse(request.resourceName, isUpload: true)
        let caller = try context.admit(metadata, .write, name.instance, "cas")
        if try await context.objects.missing(of: [name.digest], lengths: [name.digest: name.length]).isEmpty {
            return .with {
                $0.committedSize = name.length
                $0.complete = true
            }
        }
        // One that nothing is known of begins at 0.
        let key = SuspendedUploads.Name(user: caller.user, resource: request.resourceName)
        return .with { $0.committedSize = context.uploads.offset(of: key) ?? 0 }
    }
}

/// Writes a `ReadResponse` without a copy of its bytes in a message.
private struct PieceSerializer: MessageSerializer {
    func serialize<Bytes: GRPCContiguousBytes>(_ piece: [UInt8]) throws -> Bytes {
        // Field 10, `bytes`, and its length as a varint: https://protobuf.dev/programming-guides/encoding/
        var header: [UInt8] = [10 << 3 | 2]
        var length = piece.count
        while length >= 0x80 {
            header.append(UInt8(truncatingIfNeeded: length) | 0x80)
            length >>= 7
        }
        header.append(UInt8(length))
        var bytes = Bytes(repeating: 0, count: header.count + piece.count)
        bytes.withUnsafeMutableBytes { target in
            target.copyBytes(from: header)
            UnsafeMutableRawBufferPointer(rebasing: target[header.count...]).copyBytes(from: piece)
        }
        return bytes
    }
}
