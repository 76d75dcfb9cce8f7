import BuildMessages
import GRPCCore
import GRPCNIOTransportHTTP2Posix
import GRPCProtobuf
import Larder
import LarderObjects
import LarderObjectsGRPC
import SwiftProtobuf
import TestSupport
import Testing

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

typealias ActionResult = Build_Bazel_Remote_Execution_V2_ActionResult
typealias Directory = Build_Bazel_Remote_Execution_V2_Directory
typealias GetRequest = Build_Bazel_Remote_Execution_V2_GetActionResultRequest
typealias UpdateRequest = Build_Bazel_Remote_Execution_V2_UpdateActionResultRequest
typealias FindRequest = Build_Bazel_Remote_Execution_V2_FindMissingBlobsRequest
typealias FindResponse = Build_Bazel_Remote_Execution_V2_FindMissingBlobsResponse
typealias BatchUpdateRequest = Build_Bazel_Remote_Execution_V2_BatchUpdateBlobsRequest
typealias BatchUpdateResponse = Build_Bazel_Remote_Execution_V2_BatchUpdateBlobsResponse
typealias BatchReadRequest = Build_Bazel_Remote_Execution_V2_BatchReadBlobsRequest
typealias BatchReadResponse = Build_Bazel_Remote_Execution_V2_BatchReadBlobsResponse
typealias TreeRequest = Build_Bazel_Remote_Execution_V2_GetTreeRequest
typealias TreeResponse = Build_Bazel_Remote_Execution_V2_GetTreeResponse
typealias ReadRequest = Google_Bytestream_ReadRequest
typealias ReadResponse = Google_Bytestream_ReadResponse
typealias WriteRequest = Google_Bytestream_WriteRequest
typealias WriteResponse = Google_Bytestream_WriteResponse
typealias StatusRequest = Google_Bytestream_QueryWriteStatusRequest
typealias StatusResponse = Google_Bytestream_QueryWriteStatusResponse

private let api = "build.bazel.remote.execution.v2."

/// Both servers over a store, and a client of the calls.
struct Setting: Sendable {
    let store: Store
    let objects: ObjectServer
    let calls: GRPCObjectServer
    let client: GRPCClient<HTTP2ClientTransport.Posix>
    /// What each call sends.
    var authorization: String?

    static func run(
        store configuration: Larder.Configuration = .testing(),
        objects changeObjects: (inout ObjectServerConfiguration) -> Void = { _ in },
        calls change: (inout GRPCObjectServerConfiguration) -> Void = { _ in },
        _ body: @Sendable (Setting) async throws -> Void
    ) async throws {
        try await withStore(configuration: configuration) { store in
            var settings = ObjectServerConfiguration()
            settings.connections.eventLoops = 1
            settings.connections.logger.logLevel = .critical
            changeObjects(&settings)
            let objects = try await ObjectServer.start(settings, store: store)
            var configuration = GRPCObjectServerConfiguration()
            change(&configuration)
            let calls = try await GRPCObjectServer.start(configuration, beside: objects)
            let transport = try HTTP2ClientTransport.Posix(
                target: .ipv4(address: "127.0.0.1", port: calls.port), transportSecurity: .plaintext)
            let result: Result<Void, any Error>
            do {
                try await withGRPCClient(transport: transport) { client in
                    try await body(Setting(store: store, objects: objects, calls: calls, client: client))
                }
                result = .success(())
            } catch {
                result = .failure(error)
            }
            await calls.stop(drain: .seconds(5))
            await objects.stop(drain: .seconds(5))
            try result.get()
        }
    }

    private var metadata: Metadata {
        var metadata = Metadata()
        if let authorization { metadata.addString(authorization, forKey: "authorization") }
        return metadata
    }

    /// One message there, and one back.
    func call<Input: Message, Output: Message>(
        _ service: String, _ method: String, _ request: Input, _ type: Output.Type = Output.self
    ) async throws -> Output {
        try await client.unary(
            request: ClientRequest(message: request, metadata: metadata),
            descriptor: MethodDescriptor(fullyQualifiedService: service, method: method),
            serializer: ProtobufSerializer<Input>(), deserializer: ProtobufDeserializer<Output>(), options: .defaults
        ) { try $0.message }
    }

    func missing(of digests: [Build_Bazel_Remote_Execution_V2_Digest]) async throws -> [String] {
        let response: FindResponse = try await call(
            api + "ContentAddressableStorage", "FindMissingBlobs", FindRequest.with { $0.blobDigests = digests })
        return response.missingBlobDigests.map(\.hash)
    }

    func update(_ request: BatchUpdateRequest) async throws -> BatchUpdateResponse {
        try await call(api + "ContentAddressableStorage", "BatchUpdateBlobs", request)
    }

    /// Stores blobs, and returns their digests.
    @discardableResult
    func update(_ blobs: [[UInt8]]) async throws -> [Build_Bazel_Remote_Execution_V2_Digest] {
        let response = try await update(
            .with { request in
                request.requests = blobs.map { bytes in
                    .with {
                        $0.digest = named(bytes)
                        $0.data = Data(bytes)
                    }
                }
            })
        #expect(response.responses.allSatisfy { $0.status.code == 0 })
        return response.responses.map(\.digest)
    }

    func read(_ request: BatchReadRequest) async throws -> BatchReadResponse {
        try await call(api + "ContentAddressableStorage", "BatchReadBlobs", request)
    }

    func result(_ request: GetRequest) async throws -> ActionResult {
        try await call(api + "ActionCache", "GetActionResult", request)
    }

    func put(_ request: UpdateRequest) async throws -> ActionResult {
        try await call(api + "ActionCache", "UpdateActionResult", request)
    }

    func tree(_ request: TreeRequest) async throws -> [TreeResponse] {
        try await client.serverStreaming(
            request: ClientRequest(message: request, metadata: metadata),
            descriptor: MethodDescriptor(fullyQualifiedService: api + "ContentAddressableStorage", method: "GetTree"),
            serializer: ProtobufSerializer<TreeRequest>(), deserializer: ProtobufDeserializer<TreeResponse>(),
            options: .defaults
        ) { try await $0.messages.reduce(into: []) { $0.append($1) } }
    }

    func read(_ name: String, offset: Int64 = 0, limit: Int64 = 0) async throws -> [UInt8] {
        let request = ReadRequest.with {
            $0.resourceName = name
            $0.readOffset = offset
            $0.readLimit = limit
        }
        return try await client.serverStreaming(
            request: ClientRequest(message: request, metadata: metadata),
            descriptor: MethodDescriptor(fullyQualifiedService: "google.bytestream.ByteStream", method: "Read"),
            serializer: ProtobufSerializer<ReadRequest>(), deserializer: ProtobufDeserializer<ReadResponse>(),
            options: .defaults
        ) { try await $0.messages.reduce(into: []) { $0 += $1.data } }
    }

    /// Uploads pieces, one message each.
    /// - Parameters:
    ///   - offset: of the first.
    ///   - finishes: whether the last one ends the upload.
    func write(
        _ name: String, _ pieces: [[UInt8]], from offset: Int64 = 0, finishes: Bool = true
    ) async throws -> Int64 {
        let request = StreamingClientRequest<WriteRequest>(metadata: metadata) { writer in
            var offset = offset
            for (index, piece) in pieces.enumerated() {
                try await writer.write(
                    .with {
                        if index == 0 { $0.resourceName = name }
                        $0.writeOffset = offset
                        $0.data = Data(piece)
                        $0.finishWrite = finishes && index == pieces.count - 1
                    })
                offset += Int64(piece.count)
            }
        }
        return try await client.clientStreaming(
            request: request,
            descriptor: MethodDescriptor(fullyQualifiedService: "google.bytestream.ByteStream", method: "Write"),
            serializer: ProtobufSerializer<WriteRequest>(), deserializer: ProtobufDeserializer<WriteResponse>(),
            options: .defaults
        ) { try $0.message.committedSize }
    }

    func status(_ name: String) async throws -> StatusResponse {
        try await call(
            "google.bytestream.ByteStream", "QueryWriteStatus", StatusRequest.with { $0.resourceName = name })
    }
}

/// The digest of bytes, as messages have it.
func named(_ bytes: [UInt8]) -> Build_Bazel_Remote_Execution_V2_Digest {
    .with {
        $0.hash = Digest.of(bytes).hexadecimal
        $0.sizeBytes = Int64(bytes.count)
    }
}

/// The name of an upload.
func upload(_ bytes: [UInt8], _ identifier: String = "1", instance: String = "") -> String {
    "\(instance)uploads/\(identifier)/blobs/\(Digest.of(bytes).hexadecimal)/\(bytes.count)"
}

/// The name of a blob.
func blob(_ bytes: [UInt8]) -> String { "blobs/\(Digest.of(bytes).hexadecimal)/\(bytes.count)" }

/// The code with which a call fails.
func failure(_ body: () async throws -> Void) async -> RPCError.Code? {
    do {
        try await body()
        return nil
    } catch let error as RPCError {
        return error.code
    } catch {
        Issue.record("\(error)")
        return nil
    }
}
