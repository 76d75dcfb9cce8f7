import BuildMessages
import GRPCCore
import HTTPTypes
import Larder
import LarderObjects
import LarderObjectsGRPC
import SeededData
import SwiftProtobuf
import TestSupport
import Testing

/// Results of actions, capabilities and rights.
struct ActionCacheTests {
    private static let action = named(Array("action".utf8))

    private func result(_ blobs: [UInt8]...) -> ActionResult {
        .with {
            $0.outputFiles = blobs.enumerated().map { index, bytes in
                .with {
                    $0.path = "out/\(index)"
                    $0.digest = named(bytes)
                }
            }
        }
    }

    private func update(_ result: ActionResult, instance: String = "") -> UpdateRequest {
        .with {
            $0.instanceName = instance
            $0.actionDigest = Self.action
            $0.actionResult = result
        }
    }

    private func get(_ instance: String = "") -> GetRequest {
        .with {
            $0.instanceName = instance
            $0.actionDigest = Self.action
        }
    }

    @Test func aResultIsAHitWhenItsBlobsAreThere() async throws {
        try await Setting.run { setting in
            let (first, second) = (body(5_000, 1), body(5_000, 2))
            let absent = await failure { _ = try await setting.result(get()) }
            #expect(absent == .notFound)
            try await setting.update([first])
            _ = try await setting.put(update(result(first, second)))
            let incomplete = await failure { _ = try await setting.result(get()) }
            #expect(incomplete == .notFound && setting.objects.figures.incompleteResults == 1)
            try await setting.update([second])
            try await #expect(setting.result(get()) == result(first, second))
            let other = await failure { _ = try await setting.result(get("instance")) }
            #expect(other == .notFound)
        }
    }

    @Test func theFirstResultStays() async throws {
        try await Setting.run { setting in
            let (first, second) = (body(10, 1), body(10, 2))
            try await setting.update([first, second])
            _ = try await setting.put(update(result(first), instance: "a/b"))
            let refused = await failure { _ = try await setting.put(update(result(second), instance: "a/b")) }
            #expect(refused == .alreadyExists)
            try await #expect(setting.result(get("a/b")) == result(first))
            // As over HTTP.
            #expect(try await setting.store.get(Key("/a/b/ac/\(Self.action.hash)")) != nil)
        }
    }

    @Test func smallBlobsInAResult() async throws {
        try await Setting.run { setting in
            let (text, file, large) = (body(100, 1), body(200, 2), body(2 << 20, 3))
            try await setting.update([text, file, large])
            var whole = result(file, large)
            whole.stdoutDigest = named(text)
            _ = try await setting.put(update(whole))
            var request = get()
            request.inlineStdout = true
            request.inlineOutputFiles = ["out/0", "out/1", "out/2"]
            let result = try await setting.result(request)
            #expect(Array(result.stdoutRaw) == text)
            #expect(Array(result.outputFiles[0].contents) == file && result.outputFiles[1].contents.isEmpty)
        }
    }

    @Test func aResultWithNothingInIt() async throws {
        try await Setting.run { setting in
            _ = try await setting.put(update(ActionResult()))
            try await #expect(setting.result(get()) == ActionResult())
        }
    }

    @Test func whatIsNoResultIsRefused() async throws {
        try await Setting.run { setting in
            var absurd = result(body(1))
            absurd.outputFiles[0].digest.sizeBytes = -5
            var nameless = result(body(1))
            nameless.outputFiles[0].digest.hash = "x"
            for request in [update(absurd), update(nameless), update(result(), instance: "a/../b"), UpdateRequest()] {
                let refused = await failure { _ = try await setting.put(request) }
                #expect(refused == .invalidArgument)
            }
            var other = get()
            other.digestFunction = .blake3
            let unknown = await failure { _ = try await setting.result(other) }
            #expect(unknown == .invalidArgument)
            try await #expect(setting.store.figures().entryCount == 0)
        }
    }

    @Test func eachHasTheRightsGiven() async throws {
        let users = [
            ObjectAccess.User("ci", secret: Digest.of(Array("secret".utf8)), prefixes: ["/team"]),
            ObjectAccess.User("laptop", secret: Digest.of(Array("other".utf8)), right: .read),
        ]
        try await Setting.run(objects: { $0.access = ObjectAccess(users: users, anonymous: .none) }) { setting in
            var setting = setting
            let bytes = body(10)
            func refused(_ body: (Setting) async throws -> Void) async -> RPCError.Code? {
                await failure { try await body(setting) }
            }
            for authorization in [nil, "Bearer wrong", "Basic !!!", "Bearer"] {
                setting.authorization = authorization
                await #expect(refused { _ = try await $0.missing(of: [named(bytes)]) } == .unauthenticated)
                await #expect(refused { _ = try await $0.write(upload(bytes), [bytes]) } == .unauthenticated)
                await #expect(refused { _ = try await $0.read(blob(bytes)) } == .unauthenticated)
            }
            setting.authorization = "Bearer other"
            try await #expect(setting.missing(of: [named(bytes)]).count == 1)
            await #expect(refused { try await $0.update([bytes]) } == .permissionDenied)
            try await #expect(
                !capabilities(setting, "team").cacheCapabilities.actionCacheUpdateCapabilities.updateEnabled)
            setting.authorization = "Bearer secret"
            await #expect(refused { try await $0.update([bytes]) } == .permissionDenied)
            try await #expect(setting.write(upload(bytes, instance: "team/"), [bytes]) == 10)
            try await #expect(
                capabilities(setting, "team").cacheCapabilities.actionCacheUpdateCapabilities.updateEnabled)
            // Who wrote it is kept.
            #expect(
                try await setting.store.details(of: Key(Digest.of(bytes)))?.tags == ["user:ci"])
        }
    }

    private func capabilities(
        _ setting: Setting, _ instance: String
    ) async throws -> Build_Bazel_Remote_Execution_V2_ServerCapabilities {
        try await setting.call(
            "build.bazel.remote.execution.v2.Capabilities", "GetCapabilities",
            Build_Bazel_Remote_Execution_V2_GetCapabilitiesRequest.with { $0.instanceName = instance })
    }

    @Test func capabilities() async throws {
        try await Setting.run { setting in
            let capabilities = try await capabilities(setting, "")
            #expect(capabilities.cacheCapabilities.digestFunctions == [.sha256])
            #expect(capabilities.cacheCapabilities.maxBatchTotalSizeBytes == 2 << 20)
            #expect(capabilities.lowApiVersion.major == 2 && capabilities.highApiVersion.minor == 3)
            let unknown = await failure {
                let _: ActionResult = try await setting.call("build.bazel.Nothing", "Get", get())
            }
            #expect(unknown == .unimplemented)
        }
    }
}
