import BuildMessages
import GRPCCore
import GRPCProtobuf
import Larder
import LarderObjects
import SwiftProtobuf

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

private typealias FindRequest = Build_Bazel_Remote_Execution_V2_FindMissingBlobsRequest
private typealias FindResponse = Build_Bazel_Remote_Execution_V2_FindMissingBlobsResponse
private typealias UpdateRequest = Build_Bazel_Remote_Execution_V2_BatchUpdateBlobsRequest
private typealias UpdateResponse = Build_Bazel_Remote_Execution_V2_BatchUpdateBlobsResponse
private typealias ReadRequest = Build_Bazel_Remote_Execution_V2_BatchReadBlobsRequest
private typealias ReadResponse = Build_Bazel_Remote_Execution_V2_BatchReadBlobsResponse
private typealias TreeRequest = Build_Bazel_Remote_Execution_V2_GetTreeRequest
private typealias TreeResponse = Build_Bazel_Remote_Execution_V2_GetTreeResponse

/// Blobs by their digest, many in one call.
struct ContentService: RegistrableRPCService {
    let context: CallContext

    private static let name = "build.bazel.remote.execution.v2.ContentAddressableStorage"

    func registerMethods<Transport>(with router: inout RPCRouter<Transport>) where Transport: ServerTransport {
        router.unary(Self.name, "FindMissingBlobs", context, .digests, isReading: true) {
            (request: FindRequest, metadata) in
            try await find(request, metadata)
        }
        router.unary(Self.name, "BatchUpdateBlobs", context, .uploads, isReading: false) {
            (request: UpdateRequest, metadata) in
            try await update(request, metadata)
        }
        router.unary(Self.name, "BatchReadBlobs", context, .digests, isReading: true) {
            (request: ReadRequest, metadata) in
            try await read(request, metadata)
        }
        router.registerHandler(
            forMethod: MethodDescriptor(fullyQualifiedService: Self.name, method: "GetTree"),
            deserializer: ShapedDeserializer<TreeRequest>(.getResult), serializer: ProtobufSerializer<TreeResponse>()
        ) { request, _ in
            do {
                let request = try await ServerRequest(stream: request)
                _ = try context.admit(request.metadata, .read, request.message.instanceName, "cas")
                let root = try context.digest(request.message.rootDigest, request.message.digestFunction)
                let token = request.message.pageToken
                guard let skipped = token.isEmpty ? 0 : Int(token), skipped >= 0 else {
                    throw RPCError(code: .invalidArgument, message: "The page token is not from this server.")
                }
                var walk = TreeWalk(
                    objects: context.objects, root: root, skipping: skipped,
                    pageSize: Int(request.message.pageSize))
                // So that a root that is not there is an error, and not the end of a stream.
                guard let first = try await walk.nextPage() else {
                    throw RPCError(code: .notFound, message: "There is no such directory.")
                }
                let rest = walk
                return StreamingServerResponse { writer in
                    var walk = rest
                    var page: TreeResponse? = first
                    while let next = page {
                        try await writer.write(next)
                        do {
                            page = try await walk.nextPage()
                        } catch {
                            throw context.status(of: error, isReading: true)
                        }
                    }
                    return [:]
                }
            } catch {
                throw context.status(of: error, isReading: true)
            }
        }
    }

    /// In one snapshot. What is not missing is promised to stay.
    private func find(_ request: FindRequest, _ metadata: Metadata) async throws -> FindResponse {
        _ = try context.admit(metadata, .read, request.instanceName, "cas")
        var asked: [Digest: Build_Bazel_Remote_Execution_V2_Digest] = [:]
        asked.reserveCapacity(request.blobDigests.count)
        for digest in request.blobDigests {
            asked[try context.digest(digest, request.digestFunction)] = digest
        }
        guard asked.count <= Limits.digests else {
            throw RPCError(code: .invalidArgument, message: "Ask for at most \(Limits.digests) blobs in one call.")
        }
        let missing = try await context.objects.missing(
            of: Array(asked.keys), lengths: asked.mapValues(\.sizeBytes))
        return .with { $0.missingBlobDigests = missing.compactMap { asked[$0] } }
    }

    /// In one commit.
    private func update(_ request: UpdateRequest, _ metadata: Metadata) async throws -> UpdateResponse {
        let caller = try context.admit(metadata, .write, request.instanceName, "cas")
        var response = UpdateResponse()
        var blobs: [(digest: Digest, bytes: [UInt8])] = []
        var places: [Int] = []
        for upload in request.requests {
            let index = response.responses.count
            response.responses.append(.with { $0.digest = upload.digest })
            do {
                guard upload.compressor == .identity else {
                    throw RPCError(code: .invalidArgument, message: "Compressed blobs are not accepted.")
                }
                let digest = try context.digest(upload.digest, request.digestFunction)
                guard upload.digest.sizeBytes == upload.data.count else {
                    throw RPCError(
                        code: .invalidArgument, message: "The blob does not have the length that its digest states.")
                }
                guard digest != ObjectStore.empty else { continue }
                blobs.append((digest, Array(upload.data)))
                places.append(index)
            } catch let error as RPCError {
                response.responses[index].status = error.rpcStatus
            }
        }
        guard !blobs.isEmpty else { return response }
        for (index, result) in zip(places, try await context.objects.put(blobs, caller.options)) {
            if case .failed(let error) = result {
                let error = context.status(of: error, isReading: false)
                response.responses[index].status = error.rpcStatus
            } else {
                context.objects.counters.uploads.add(1, ordering: .relaxed)
            }
        }
        return response
    }

    private func read(_ request: ReadRequest, _ metadata: Metadata) async throws -> ReadResponse {
        _ = try context.admit(metadata, .read, request.instanceName, "cas")
        var response = ReadResponse()
        var room = Int64(Limits.batch)
        var sent = Int64(Limits.sentMessage)
        for wanted in request.digests {
            let digest = try context.digest(wanted, request.digestFunction)
            var answer = ReadResponse.Response()
            answer.digest = wanted
            do {
                sent -= Limits.blobOverhead
                answer.data = try await bytes(digest, &room, &sent)
                context.objects.counters.hits.add(1, ordering: .relaxed)
            } catch {
                let error = context.status(of: error, isReading: true)
                if error.code == .notFound { context.objects.counters.misses.add(1, ordering: .relaxed) }
                // The client asked for more than it may, all together.
                if error.code == .invalidArgument { throw error }
                answer.status = error.rpcStatus
            }
            response.responses.append(answer)
        }
        return response
    }

    /// - Parameters:
    ///   - room: of the blobs that one message may have.
    ///   - sent: of the message.
    private func bytes(_ digest: Digest, _ room: inout Int64, _ sent: inout Int64) async throws -> Data {
        if digest == ObjectStore.empty { return Data() }
        guard let body = try await context.objects.blob(digest)?.body else {
            throw RPCError(code: .notFound, message: "There is no such blob.")
        }
        guard body.length.bytes <= room else {
            throw RPCError(
                code: .invalidArgument, message: "The blobs have more than \(Limits.batch) bytes: read them as streams."
            )
        }
        guard body.length.bytes <= sent else {
            throw RPCError(code: .resourceExhausted, message: "The answer has no room for this blob: ask for it again.")
        }
        room -= body.length.bytes
        sent -= body.length.bytes
        return Data(try await body.bytes())
    }
}

extension RPCError {
    /// The status of one of many operations.
    fileprivate var rpcStatus: Google_Rpc_Status {
        .with {
            $0.code = Int32(code.rawValue)
            $0.message = message
        }
    }
}
