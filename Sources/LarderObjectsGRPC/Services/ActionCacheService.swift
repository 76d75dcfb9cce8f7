import BuildMessages
import GRPCCore
import Larder
import LarderObjects
import SwiftProtobuf

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

private typealias ActionResult = Build_Bazel_Remote_Execution_V2_ActionResult
private typealias GetRequest = Build_Bazel_Remote_Execution_V2_GetActionResultRequest
private typealias UpdateRequest = Build_Bazel_Remote_Execution_V2_UpdateActionResultRequest

/// Results of actions, by the digest of the action.
struct ActionCacheService: RegistrableRPCService {
    let context: CallContext

    private static let name = "build.bazel.remote.execution.v2.ActionCache"

    func registerMethods<Transport>(with router: inout RPCRouter<Transport>) where Transport: ServerTransport {
        router.unary(Self.name, "GetActionResult", context, .getResult, isReading: true) {
            (request: GetRequest, metadata) in
            try await get(request, metadata)
        }
        router.unary(Self.name, "UpdateActionResult", context, .updateResult, isReading: false) {
            (request: UpdateRequest, metadata) in try await update(request, metadata)
        }
    }

    private func key(_ instance: String, _ digest: Digest) throws -> Key {
        Key(try ObjectPath(instance: instance, "ac", digest).text)
    }

    private func get(_ request: GetRequest, _ metadata: Metadata) async throws -> ActionResult {
        _ = try context.admit(metadata, .read, request.instanceName, "ac")
        let digest = try context.digest(request.actionDigest, request.digestFunction)
        guard case (_, .result(var result))? = try await context.objects.result(key(request.instanceName, digest))
        else {
            context.objects.counters.misses.add(1, ordering: .relaxed)
            throw RPCError(code: .notFound, message: "There is no result for this action.")
        }
        context.objects.counters.hits.add(1, ordering: .relaxed)
        try await inline(&result, as: request)
        return result
    }

    /// Puts blobs into the result that the client wants in it, if they are small.
    private func inline(_ result: inout ActionResult, as request: GetRequest) async throws {
        var room = Limits.inlined
        func bytes(_ digest: Build_Bazel_Remote_Execution_V2_Digest) async throws -> Data? {
            guard digest.sizeBytes <= room, let digest = try? ActionResults.digest(digest),
                let body = try await context.objects.blob(digest)?.body, body.length.bytes <= room
            else { return nil }
            room -= body.length.bytes
            return Data(try await body.bytes())
        }
        if request.inlineStdout, result.hasStdoutDigest, result.stdoutRaw.isEmpty {
            result.stdoutRaw = try await bytes(result.stdoutDigest) ?? Data()
        }
        if request.inlineStderr, result.hasStderrDigest, result.stderrRaw.isEmpty {
            result.stderrRaw = try await bytes(result.stderrDigest) ?? Data()
        }
        guard !request.inlineOutputFiles.isEmpty else { return }
        let wanted = Set(request.inlineOutputFiles)
        for index in result.outputFiles.indices
        where wanted.contains(result.outputFiles[index].path) && result.outputFiles[index].contents.isEmpty {
            result.outputFiles[index].contents = try await bytes(result.outputFiles[index].digest) ?? Data()
        }
    }

    private func update(_ request: UpdateRequest, _ metadata: Metadata) async throws -> ActionResult {
        let caller = try context.admit(metadata, .write, request.instanceName, "ac")
        let digest = try context.digest(request.actionDigest, request.digestFunction)
        guard request.hasActionResult else {
            throw RPCError(code: .invalidArgument, message: "The request contains no result.")
        }
        let bytes: [UInt8] = try request.actionResult.serializedBytes()
        try await context.objects.put(result: bytes, for: key(request.instanceName, digest), caller.options)
        context.objects.counters.uploads.add(1, ordering: .relaxed)
        return request.actionResult
    }
}
