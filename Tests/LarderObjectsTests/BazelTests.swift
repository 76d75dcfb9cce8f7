import BuildMessages
import Foundation
import Larder
import LarderObjects
import Logging
import SeededData
import SwiftProtobuf
import Synchronization
import TestSupport
import Testing

private typealias ActionResult = Build_Bazel_Remote_Execution_V2_ActionResult

/// Bazel's HTTP cache: blobs by their digest, results of actions by that of the action.
struct BazelTests {
    private func result(_ blobs: Digest..., tree: Digest? = nil) throws -> [UInt8] {
        var result = ActionResult()
        result.outputFiles = blobs.map { digest in
            .with {
                $0.path = "out/\(digest.hexadecimal.prefix(4))"
                $0.digest.hash = digest.hexadecimal
            }
        }
        if let tree { result.outputDirectories = [.with { $0.treeDigest.hash = tree.hexadecimal }] }
        return try result.serializedBytes()
    }

    @Test(arguments: [0, 1, 1_000, 300_000, 5_000_000]) func blobs(length: Int) async throws {
        try await Setting.run { setting in
            let bytes = body(length)
            let path = "/cas/\(Digest.of(bytes).hexadecimal)"
            if length > 0 { try await #expect(setting.get(path).status == 404) }
            try await #expect(setting.put(path, bytes) == 200)
            let reply = try await setting.get(path)
            #expect(reply.status == 200 && reply.bytes == bytes)
            #expect(reply.fields[.contentLength] == "\(length)" && reply.fields[.date] != nil)
            let head = try await setting.send("HEAD", path)
            #expect(head.status == 200 && head.fields[.contentLength] == "\(length)")
            // An instance has the same blobs.
            try await #expect(setting.get("/instance/a" + path).bytes == bytes)
        }
    }

    @Test func theEmptyBlobIsAlwaysThere() async throws {
        try await Setting.run { setting in
            try await #expect(setting.get("/cas/\(Digest.of([UInt8]()).hexadecimal)").status == 200)
        }
    }

    @Test func aWrongDigestIsRefused() async throws {
        try await Setting.run { setting in
            for length in [10, 3_000_000] {
                let path = "/cas/\(Digest.of(body(length)).hexadecimal)"
                try await #expect(setting.put(path, body(length, 1)) == 400)
                try await #expect(setting.get(path).status == 404)
            }
            try await #expect(setting.store.figures().entryCount == 0)
        }
    }

    @Test(arguments: ["xyz", "ABCDEF", String(repeating: "g", count: 64), String(repeating: "A", count: 64)])
    func aNameThatIsNoDigest(name: String) async throws {
        try await Setting.run { setting in
            for kind in name.count == 64 ? ["cas", "ac"] : ["cas"] {
                try await #expect(setting.get("/\(kind)/\(name)").status == 400)
                try await #expect(setting.put("/\(kind)/\(name)", [1]) == 400)
            }
        }
    }

    /// A result whose blobs are not all there is a miss.
    @Test func aResultIsAHitWhenItsBlobsAreThere() async throws {
        try await Setting.run { setting in
            let (first, second) = (body(5_000, 1), body(5_000, 2))
            let path = "/ac/\(action(1))"
            _ = try await setting.putBlob(first)
            let value = try result(Digest.of(first), Digest.of(second))
            try await #expect(setting.put(path, value) == 200)
            try await #expect(setting.get(path).status == 404)
            #expect(setting.server.figures.incompleteResults == 1)
            _ = try await setting.putBlob(second)
            try await #expect(setting.get(path).bytes == value)
            try await setting.store.remove(Key(Digest.of(first)))
            try await #expect(setting.get(path).status == 404)
        }
    }

    @Test func theFilesOfADirectoryCount() async throws {
        try await Setting.run { setting in
            let (file, other) = (body(100, 1), body(100, 2))
            var tree = Build_Bazel_Remote_Execution_V2_Tree()
            tree.root.files = [.with { $0.digest.hash = Digest.of(file).hexadecimal }]
            tree.children = [.with { $0.files = [.with { $0.digest.hash = Digest.of(other).hexadecimal }] }]
            let digest = try await setting.putBlob(try tree.serializedBytes())
            _ = try await setting.putBlob(file)
            let path = "/ac/\(action(1))"
            try await #expect(setting.put(path, result(tree: digest)) == 200)
            try await #expect(setting.get(path).status == 404)
            _ = try await setting.putBlob(other)
            try await #expect(setting.get(path).status == 200)
        }
    }

    /// Who may write cannot give others something else for an action that was built before.
    @Test(arguments: [false, true]) func theFirstResultStays(replaces: Bool) async throws {
        try await Setting.run({ $0.replacesResults = replaces }) { setting in
            let (first, second) = (try await setting.putBlob(body(10, 1)), try await setting.putBlob(body(10, 2)))
            let path = "/instance/ac/\(action(1))"
            let (value, other) = (try result(first), try result(second))
            try await #expect(setting.put(path, value) == 200)
            // Who sends other outputs is not told that they are stored.
            try await #expect(setting.put(path, other) == (replaces ? 200 : 409))
            try await #expect(setting.get(path).bytes == (replaces ? other : value))
            // The same outputs, built on another machine (execution_metadata), change nothing.
            try await #expect(setting.put(path, value + [0x4A, 2, 0x0A, 0]) == 200)
            if !replaces { try await #expect(setting.get(path).bytes == value) }
            let printed = try ActionResult.with {
                $0 = try ActionResult(serializedBytes: value)
                $0.stdoutRaw = Data("took 3 s".utf8)
                $0.outputFiles[0].nodeProperties.mtime.seconds = 5
            }
            try await #expect(setting.put(path, printed.serializedBytes()) == 200)
            try await #expect(setting.put(path, replaces ? other : value) == 200)
            // Another instance has results of its own.
            try await #expect(setting.get("/ac/\(action(1))").status == 404)
            // One that is of no use gives way.
            try await setting.store.remove(Key(replaces ? second : first))
            try await #expect(setting.put(path, replaces ? value : other) == 200)
            try await #expect(setting.get(path).bytes == (replaces ? value : other))
        }
    }

    /// What failed may succeed later.
    @Test func aResultOfAFailureGivesWay() async throws {
        try await Setting.run { setting in
            let path = "/ac/\(action(1))"
            let failed = try ActionResult.with { $0.exitCode = 1 }.serializedBytes() as [UInt8]
            let succeeded = try result(try await setting.putBlob(body(10)))
            try await #expect(setting.put(path, failed) == 200)
            try await #expect(setting.put(path, succeeded) == 200)
            try await #expect(setting.get(path).bytes == succeeded)
        }
    }

    /// The files of a directory that is named without a tree count, too.
    @Test func theDirectoriesBelowARootCount() async throws {
        typealias Directory = Build_Bazel_Remote_Execution_V2_Directory
        try await Setting.run { setting in
            let file = body(100, 1)
            let child =
                try Directory.with {
                    $0.files = [.with { $0.digest.hash = Digest.of(file).hexadecimal }]
                }.serializedBytes() as [UInt8]
            let root =
                try Directory.with {
                    $0.directories = [.with { $0.digest.hash = Digest.of(child).hexadecimal }]
                }.serializedBytes() as [UInt8]
            let value =
                try ActionResult.with {
                    $0.outputDirectories = [.with { $0.rootDirectoryDigest.hash = Digest.of(root).hexadecimal }]
                }.serializedBytes() as [UInt8]
            let path = "/ac/\(action(1))"
            try await #expect(setting.put(path, value) == 200)
            for bytes in [root, child, file] {
                try await #expect(setting.get(path).status == 404)
                _ = try await setting.putBlob(bytes)
            }
            try await #expect(setting.get(path).status == 200)
        }
    }

    /// Content that is known by another name stays when that name goes.
    @Test func aPromisedBlobHasAnEntryOfItsOwn() async throws {
        try await Setting.run { setting in
            let bytes = body(5_000)
            try await #expect(setting.put("/notes/a", bytes) == 201)
            let path = "/cas/\(Digest.of(bytes).hexadecimal)"
            try await #expect(setting.send("HEAD", path).status == 200)
            try await #expect(setting.send("DELETE", "/notes/a").status == 204)
            try await #expect(setting.get(path).bytes == bytes)
        }
    }

    @Test func whatIsNoResultIsRefused() async throws {
        try await Setting.run { setting in
            var absurd = ActionResult()
            absurd.outputFiles = [
                .with {
                    $0.digest.hash = action(1)
                    $0.digest.sizeBytes = -1
                }
            ]
            var named = ActionResult()
            named.stdoutDigest.hash = "../../etc/passwd"
            let values = [
                [], [0xFF, 0xFF, 0xFF], Array("no protobuf".utf8), try absurd.serializedBytes(),
                try named.serializedBytes(),
            ]
            for value in values as [[UInt8]] {
                try await #expect(setting.put("/ac/\(action(1))", value) == 400)
            }
            try await #expect(setting.store.figures().entryCount == 0)
            // ccache keeps entries of its own there.
            try await #expect(setting.put("/ac/\(action(2))", [0xCC, 0xAC, 1, 2, 3]) == 200)
            try await #expect(setting.get("/ac/\(action(2))").bytes == [0xCC, 0xAC, 1, 2, 3])
            // Some are lists that grow.
            try await #expect(setting.put("/ac/\(action(2))", [0xCC, 0xAC, 4]) == 200)
            try await #expect(setting.get("/ac/\(action(2))").bytes == [0xCC, 0xAC, 4])
            // Of its directories of two digits one is 'ac'.
            try await #expect(setting.put("/ccache/ac/0123456789abcdef0123456789abcdef012345", [1]) == 201)
        }
    }

    /// What a client counts on stays, however much comes after it.
    @Test func promisedBlobsStay() async throws {
        let budget = Budget(bytes: .mebibytes(8))
        try await Setting.run(store: .testing(budget: budget)) { setting in
            let kept = body(100_000, 1)
            let digest = try await setting.putBlob(kept)
            let path = "/ac/\(action(1))"
            try await #expect(setting.put(path, result(digest)) == 200)
            try await #expect(setting.get(path).status == 200)
            for number in 0..<200 {
                try await #expect(setting.put("/files/\(number)", body(100_000, number + 2)) == 201)
            }
            #expect(try await setting.store.figures().displacedCount > 0)
            try await #expect(setting.get("/cas/\(digest.hexadecimal)").bytes == kept)
        }
    }

    /// A store that is too small for one build says so.
    @Test func aBuildThatDoesNotFit() async throws {
        let budget = Budget(bytes: .mebibytes(4))
        try await Setting.run(store: .testing(budget: budget)) { setting in
            var statuses: Set<Int> = []
            for number in 0..<60 {
                let bytes = body(100_000, number)
                statuses.insert(try await setting.put("/cas/\(Digest.of(bytes).hexadecimal)", bytes))
            }
            #expect(statuses == [200, 507] && setting.server.figures.uploadsWithoutRoom > 0)
            // What is taken is there, small blobs, too.
            for number in 0..<20 {
                let bytes = body(3_000, 1_000 + number)
                let path = "/cas/\(Digest.of(bytes).hexadecimal)"
                if try await setting.put(path, bytes) == 200 { try await #expect(setting.get(path).status == 200) }
            }
        }
    }

    /// What real builds have: directories of hundreds of links, with times and modes.
    @Test(arguments: [false, true]) func resultsOfManyLinks(hasProperties: Bool) async throws {
        try await Setting.run { setting in
            for count in [29, 1_000] {
                let links = (0..<count).map { number in
                    Build_Bazel_Remote_Execution_V2_SymlinkNode.with {
                        $0.name = "l\(number)"
                        $0.target = "tool"
                        guard hasProperties else { return }
                        $0.nodeProperties.mtime.seconds = 1_700_000_000
                        $0.nodeProperties.unixMode.value = 0o755
                    }
                }
                let directory = Build_Bazel_Remote_Execution_V2_Directory.with { $0.symlinks = links }
                let tree = Build_Bazel_Remote_Execution_V2_Tree.with { $0.root = directory }
                let digest = try await setting.putBlob(try tree.serializedBytes())
                let path = "/ac/\(action(count))"
                try await #expect(setting.put(path, result(tree: digest)) == 200)
                try await #expect(setting.get(path).status == 200, "\(count) links")
                let direct = ActionResult.with {
                    $0.outputSymlinks = links.map { link in
                        .with {
                            $0.path = link.name
                            $0.target = link.target
                            if link.hasNodeProperties { $0.nodeProperties = link.nodeProperties }
                        }
                    }
                }
                try await #expect(setting.put("/ac/\(action(count + 1))", direct.serializedBytes()) == 200)
            }
        }
    }

    /// Clients join a base URL that ends in a slash and a path that begins with one.
    @Test func aSlashTooMany() async throws {
        try await Setting.run { setting in
            let path = "cas/\(Digest.of(body(10)).hexadecimal)"
            try await #expect(setting.put("//" + path, body(10)) == 200)
            for name in ["/" + path, "///" + path, "/instance//" + path, "/%2F" + path] {
                try await #expect(setting.get(name).bytes == body(10), "\(name)")
            }
            try await #expect(setting.put("//a//b", body(5)) == 201)
            try await #expect(setting.get("/a/b").bytes == body(5))
            for name in ["//../a", "//./a"] { try await #expect(setting.get(name).status == 400, "\(name)") }
        }
    }

    /// Clients as Gradle send all of it before they read the answer.
    @Test func aRefusalReachesAClientThatIsStillSending() async throws {
        try await Setting.run { setting in
            let (port, path) = (setting.port, "/ac/\(action(1))")
            let answer = await withCheckedContinuation { continuation in
                Thread { continuation.resume(returning: blockingPut(port, path, length: 40_000_000)) }.start()
            }
            #expect(answer.hasPrefix("HTTP/1.1 413 "), "\(answer)")
        }
    }

    /// Sends a request whole, and then reads the answer, without looking before; returns the head, or what failed.
    private func blockingPut(_ port: Int, _ path: String, length: Int) -> String {
        let descriptor = socket(AF_INET, RawSocket.stream, 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        let connected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else { return "not connected: \(errno)" }
        let head = "PUT \(path) HTTP/1.1\r\nHost: a\r\nContent-Length: \(length)\r\n\r\n"
        for bytes in [Array(head.utf8)]
            + Array(repeating: [UInt8](repeating: 1, count: 1_000_000), count: length / 1_000_000)
        {
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, RawSocket.noSignal) }
                guard count > 0 else { return "not sent: \(errno)" }
                rest = rest.dropFirst(count)
            }
        }
        var answer = [UInt8](repeating: 0, count: 4_096)
        let count = recv(descriptor, &answer, answer.count, 0)
        return count > 0 ? String(decoding: answer[..<count], as: UTF8.self) : "not received: \(errno)"
    }

    private enum RawSocket {
        #if canImport(Darwin)
            static let stream = SOCK_STREAM
            static let noSignal = Int32(0)
        #else
            static let stream = Int32(SOCK_STREAM.rawValue)
            static let noSignal = Int32(MSG_NOSIGNAL)
        #endif
    }

    /// A few bytes that would become many objects.
    @Test func resultsThatAreMoreThanTheySay() async throws {
        try await Setting.run { setting in
            let links = Array(repeatElement([0x52, 0] as [UInt8], count: 100_000).joined())
            try await #expect(setting.put("/ac/\(action(1))", links) == 400)
            // Two million empty files, and a text that makes the message long enough for them.
            let padding = Array(repeatElement([0x0A, 0] as [UInt8], count: 2_000_000).joined())
            let text: [UInt8] = [0x7A, 0x80, 0xDA, 0xC4, 0x09] + [UInt8](repeating: 0x61, count: 20_000_000)
            let padded = padding + text
            let length = padded.count
            let head: [UInt8] = [
                0x0A, UInt8(length & 127 | 128), UInt8(length >> 7 & 127 | 128), UInt8(length >> 14 & 127 | 128),
                UInt8(length >> 21),
            ]
            #expect(throws: (any Error).self) { try ActionResults.files(of: head + padded) }
            let long = [UInt8](repeating: 0, count: 5 << 20)
            try await #expect(setting.put("/ac/\(action(1))", long) == 413)
            let files = Array(repeatElement([0x0A, 0] as [UInt8], count: 100_000).joined())
            let tree = try await setting.putBlob([0x0A, 0xC0, 0x9A, 0x0C] + files)
            try await #expect(setting.put("/ac/\(action(1))", result(tree: tree)) == 200)
            try await #expect(setting.get("/ac/\(action(1))").status == 404)
        }
    }

    /// An operator who wonders why a build has no hits finds the reason in the log.
    @Test func aTreeThatCannotBeReadIsNamed() async throws {
        let lines = Mutex<[String]>([])
        try await Setting.run { configuration in
            configuration.connections.logger = Logger(label: "test") { _ in
                Recorder { line in lines.withLock { $0.append(line) } }
            }
        } _: { setting in
            let tree = try await setting.putBlob([1, 2, 3])
            try await #expect(setting.put("/ac/\(action(1))", result(tree: tree)) == 200)
            try await #expect(setting.get("/ac/\(action(1))").status == 404)
            let heard = lines.withLock(\.self)
            #expect(heard.contains { $0.contains("a stored tree or directory cannot be read") }, "\(heard)")
        }
    }

    @Test func status() async throws {
        try await Setting.run(store: .testing(budget: Budget(bytes: .mebibytes(100)))) { setting in
            _ = try await setting.putBlob(body(10))
            let reply = try await setting.get("/status")
            #expect(reply.status == 200 && reply.text.contains("\"NumFiles\":1"))
            #expect(reply.text.contains("\"MaxSize\":104857600"))
        }
    }
}
