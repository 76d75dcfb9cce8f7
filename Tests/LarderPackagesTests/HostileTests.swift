import Foundation
import Larder
import LarderPackages
import TestSupport
import Testing

/// Archives that mean harm, or were damaged: a typed error that names the archive and the member, and nothing changes.
@Suite struct HostileTests {
    private static let fine = RawZip.File("a.example/x", Array("content".utf8))
    private static let line = "http://a.example/x ; NULL ; NULL"

    private func expect(
        _ code: PackageError.Code, _ zip: RawZip, member: String? = nil,
        _ change: (inout InstallOptions) -> Void = { _ in }, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await expect(code, zip.bytes, member: member, change, sourceLocation: sourceLocation)
    }

    private func expect(
        _ code: PackageError.Code, _ bytes: [UInt8], member: String? = nil,
        _ change: (inout InstallOptions) -> Void = { _ in }, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await Setting.run { setting in
            let path = try setting.file("hostile.zip", bytes)
            var options = InstallOptions()
            change(&options)
            do {
                try await setting.packages.install(path, options)
                Issue.record("it was installed", sourceLocation: sourceLocation)
            } catch let error as PackageError {
                #expect(error.code == code, "\(error)", sourceLocation: sourceLocation)
                #expect(error.archive == path, sourceLocation: sourceLocation)
                if let member { #expect(error.member == member, "\(error)", sourceLocation: sourceLocation) }
            }
            try await #expect(setting.store.listed().isEmpty, sourceLocation: sourceLocation)
        }
    }

    @Test(arguments: [
        "../x", "a/../../x", "/etc/passwd", "a\\..\\x", "C:/x", "C:x", "a\u{1}b", "a/..", "a.example/./y",
    ]) func namesThatLeaveTheDirectory(_ name: String) async throws {
        try await expect(.unsafeName, RawZip.manifest([Self.line], [Self.fine, .init(name)]), member: name)
    }

    @Test func namesThatAreNone() async throws {
        try await expect(.unsafeName, RawZip.manifest([Self.line], [Self.fine, .init(name: [0xFF, 0x41], [])]))
        try await expect(
            .unsafeName,
            RawZip.manifest([Self.line], [Self.fine, .init(name: [UInt8](repeating: 65, count: 5_000), [])]))
    }

    @Test func links() async throws {
        let link = RawZip.File("a.example/link", Array("/etc/passwd".utf8)) { $0.attributes = 0o120777 << 16 }
        try await expect(.notAFile, RawZip.manifest([Self.line], [Self.fine, link]), member: "a.example/link")
        // A directory must not have content: no limit would count it.
        let directory = RawZip.File("a.example/d/", Array("content".utf8)) { $0.attributes = 0o040755 << 16 }
        try await expect(.notAFile, RawZip.manifest([Self.line], [Self.fine, directory]), member: "a.example/d/")
        let empty = RawZip.File("a.example/d/") { $0.attributes = 0o040755 << 16 }
        try await expect(.missingMember, RawZip.manifest(["http://a.example/d/ ; NULL ; NULL"], [Self.fine, empty]))
        let device = RawZip.File("a.example/tty") { $0.attributes = 0o020666 << 16 }
        try await expect(.notAFile, RawZip.manifest([Self.line], [Self.fine, device]), member: "a.example/tty")
    }

    @Test func duplicates() async throws {
        let twice = RawZip.manifest([Self.line], [Self.fine, Self.fine])
        try await expect(.duplicate, twice)
        try await expect(
            .duplicate, RawZip.manifest([Self.line, Self.line], [Self.fine]), member: "http://a.example/x")
        try await expect(
            .duplicate,
            RawZip.manifest(
                [
                    Self.line, "http://A.example:80/y ; NULL ; NULL ; NULL ; a.example/x",
                ], [Self.fine]), member: "a.example/x")
        let two = RawZip([Self.fine, .init("manifest.afcache"), .init("afcache.manifest")])
        try await expect(.duplicate, two, member: "afcache.manifest")
    }

    @Test func damagedData() async throws {
        let crc = RawZip.File("a.example/x", Array("content".utf8)) { $0.crc = 1 }
        try await expect(.damagedMember, RawZip.manifest([Self.line], [crc]), member: "a.example/x")
        // Not a deflate stream.
        let packed = RawZip.File("a.example/x", Array("content".utf8)) {
            $0.method = 8
            $0.length = 100
        }
        try await expect(.damagedMember, RawZip.manifest([Self.line], [packed]), member: "a.example/x")
        let unknown = RawZip.File("a.example/x", Array("content".utf8)) { $0.method = 97 }
        try await expect(.unsupported, RawZip.manifest([Self.line], [unknown]), member: "a.example/x")
    }

    @Test func bombs() async throws {
        let large = RawZip.File("a.example/x", Array("content".utf8)) {
            $0.method = 8
            $0.length = 1 << 31
        }
        try await expect(.tooLarge, RawZip.manifest([Self.line], [large]), member: "a.example/x") {
            $0.limits.memberBytes = .mebibytes(1)
        }
        try await expect(.tooLarge, RawZip.manifest([Self.line], [large])) { $0.limits.totalBytes = .mebibytes(1) }
        // Many members with the data of one.
        let shared = (0..<20).map { index in
            RawZip.File("a.example/\(index)", Array(repeating: 65, count: index == 0 ? 5_000 : 0)) {
                $0.packedLength = 5_000
                $0.length = 5_000
                $0.sharedWith = 0
            }
        }
        try await Setting.run { setting in
            let path = try setting.archive(RawZip.manifest([Self.line], shared))
            let code = try await packageCode { try await setting.packages.install(path) }
            // libzip finds the first of them.
            #expect(code == .overlap || code == .notAnArchive)
            try await #expect(setting.store.listed().isEmpty)
        }
        // A member that is longer than it says: a stream of zeroes in a declared length of ten.
        try await Setting.run { setting in
            let folder = setting.directory.appending("f").string
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try Data(repeating: 0, count: 1 << 20).write(to: URL(fileURLWithPath: folder + "/zeroes"))
            let archive = setting.directory.appending("bomb.zip")
            var options = PackageOptions()
            options.hasList = false
            try Package.create(archive, from: FolderOptions(folder), options)
            var bytes = try TestFiles.read(archive)
            let length = withUnsafeBytes(of: UInt32(1 << 20).littleEndian) { Array($0) }
            var places: [Int] = []
            for offset in 0..<(bytes.count - 4) where bytes[offset..<(offset + 4)].elementsEqual(length) {
                places.append(offset)
            }
            #expect(!places.isEmpty)
            for place in places { bytes.replaceSubrange(place..<(place + 4), with: [10, 0, 0, 0]) }
            let bomb = try setting.file("bomb.zip", bytes)
            let code = try await packageCode { try await setting.packages.install(bomb) }
            #expect(code == .tooLarge || code == .damagedMember || code == .notAnArchive)
            try await #expect(setting.store.listed().isEmpty)
        }
    }

    @Test func absurdCounts() async throws {
        var zip = RawZip.manifest([Self.line], [Self.fine])
        zip.count = 65_535
        try await expect(.tooLarge, zip) { $0.limits.members = 1_000 }
        try await expect(.notAnArchive, zip)
        // In the record of Zip64.
        var long = zip.bytes
        let end = long.count - 22
        let record: [UInt8] =
            [0x50, 0x4B, 6, 6] + [UInt8](repeating: 0, count: 28) + [UInt8](repeating: 0xFF, count: 8)
            + [UInt8](repeating: 0, count: 16)
        let locator: [UInt8] =
            [0x50, 0x4B, 6, 7, 0, 0, 0, 0] + withUnsafeBytes(of: UInt64(end).littleEndian) { Array($0) } + [1, 0, 0, 0]
        long.insert(contentsOf: record + locator, at: end)
        try await expect(.tooLarge, long)
    }

    @Test func cutOffAnywhere() async throws {
        let whole = RawZip.manifest([Self.line], [Self.fine]).bytes
        try await Setting.run { setting in
            for length in 0..<whole.count {
                let path = try setting.file("cut.zip", Array(whole[..<length]))
                let code = try await packageCode { try await setting.packages.install(path) }
                if code != .notAnArchive { Issue.record("cut at \(length): \(code.map { "\($0)" } ?? "installed")") }
            }
            try await #expect(setting.store.listed().isEmpty)
            try await setting.packages.install(setting.file("cut.zip", whole))
            try await #expect(setting.offline("http://a.example/x") == "content")
        }
    }

    /// Bytes that were changed at random give a typed error or a sound package, and never anything else.
    @Test func mutations() async throws {
        try await Setting.run { setting in
            let own = try TestFiles.read(setting.package(["a": "1", "b/c.html": "<p>"]))
            let sources = [own, RawZip.manifest([Self.line], [Self.fine]).bytes]
            var generator = SeededGenerator(seed: 16)
            var refused = 0
            for round in 0..<400 {
                var bytes = sources[round % 2]
                for _ in 0...Int.random(in: 0..<4, using: &generator) {
                    let place = Int.random(in: 0..<bytes.count, using: &generator)
                    bytes[place] = UInt8.random(in: .min ... .max, using: &generator)
                }
                let path = try setting.file("mutated.zip", bytes)
                if try await packageCode({ try await setting.packages.install(path) }) != nil { refused += 1 }
                for package in try await setting.packages.packages() {
                    try await #expect(setting.packages.verify(package.name, isDeep: true).isWhole)
                    try await setting.packages.remove(package.name)
                }
                if try !setting.keys().isEmpty { Issue.record("round \(round) left \(try setting.keys())") }
            }
            #expect(refused > 100)
        }
    }

    @Test func manifestsThatLie() async throws {
        try await expect(
            .missingMember, RawZip.manifest([Self.line, "http://a.example/no ; NULL ; NULL"], [Self.fine]))
        try await expect(.badManifest, RawZip.manifest(["ftp://a.example/x ; NULL ; NULL"], [Self.fine]))
        try await expect(.badManifest, RawZip.manifest(["what is this"], [Self.fine]))
        try await expect(.badManifest, RawZip.manifest([Self.line] + Array(repeating: "", count: 5_000), [Self.fine]))
        try await expect(.badManifest, RawZip([]))
        let long = "http://a.example/" + String(repeating: "x", count: 300_000) + " ; NULL ; NULL"
        try await expect(.badManifest, RawZip.manifest([long], [Self.fine]))
        try await expect(.tooLarge, RawZip.manifest([String(long.prefix(20_000)) + " ; NULL ; NULL"], [Self.fine]))
    }

    private func list(_ lines: [String], _ files: [RawZip.File] = [fine]) -> RawZip {
        RawZip(files + [.init("larder.members", Array((lines.joined(separator: "\n") + "\n").utf8))])
    }

    @Test func listsThatLie() async throws {
        let header = #"{"larder":1,"name":"n","version":"1","created":"2026-01-01T00:00:00Z","members":1}"#
        let digest = Digest.of(Array("content".utf8)).hexadecimal
        func line(_ more: String = "", digest: String = digest, size: Int = 7, url: String = "http://a.example/x")
            -> String
        {
            #"{"url":"\#(url)","path":"a.example/x","sha256":"\#(digest)","size":\#(size)\#(more)}"#
        }
        try await expect(.badManifest, list([]))
        try await expect(.badManifest, list(["{}", line()]))
        try await expect(.unsupported, list([header.replacing("\"larder\":1", with: "\"larder\":2"), line()]))
        try await expect(.digestMismatch, list([header, line(digest: String(repeating: "0", count: 64))]))
        try await expect(.digestMismatch, list([header, line(size: 8)]))
        try await expect(.badManifest, list([header, line(digest: "00")]))
        try await expect(.badManifest, list([header, line(#","status":304"#)]))
        try await expect(.badManifest, list([header, line(#","status":99999"#)]))
        try await expect(.badManifest, list([header, line(#","status":401"#)]))
        try await expect(.badManifest, list([header, line(#","status":204"#)]))
        try await expect(.badManifest, list([header, line(), "", ""]))
        try await expect(
            .badManifest, list([header.replacing(#""version":"1""#, with: #""version":"\u001b[31m""#), line()]))
        try await expect(.badManifest, list([header, line(size: .max)]))
        try await expect(.badManifest, list([header, line(#","fields":[["Vary","Cookie"]]"#)]))
        try await expect(.badManifest, list([header, line(#","fields":[["Cache-Control","no-store"]]"#)]))
        try await expect(.badManifest, list([header, line(#","fields":[["a","b\r\nc: d"]]"#)]))
        try await expect(.badManifest, list([header, line(#","fields":[["no name","b"]]"#)]))
        try await expect(.badManifest, list([header, line(#","fields":[["a"]]"#)]))
        let two = header.replacing("\"members\":1", with: "\"members\":2")
        try await expect(.duplicate, list([two, line(), line(url: "http://a.example/y")]))
        try await expect(.badManifest, list([two, line()]))
        try await expect(.badManifest, list([header, #"{"url":"http://a.example/x","sha256":"\#(digest)","size":7}"#]))
        try await expect(.badManifest, list([header, line(url: "not a url")]))
        try await expect(.badManifest, list([header, String(repeating: "[", count: 100_000)]))
        try await expect(.badManifest, list([header.replacing("\"n\"", with: "\"../n\""), line()]).bytes) { _ in }
        try await expect(
            .unsafeName,
            list([header, #"{"data":"../x","path":"a.example/x","sha256":"\#(digest)","size":7}"#]))
    }

    /// An increment that says of a body in the store what is not so.
    @Test func incrementsThatLie() async throws {
        try await Setting.run { setting in
            try await setting.packages.install(setting.package(["x": "content", "y": "other"]))
            let base = try #require(try await setting.packages.package("site")).listDigest
            let digest = Digest.of(Array("content".utf8)).hexadecimal
            for size in [0, 5, 500, 1 << 32, Int.max] {
                let increment = list(
                    [
                        #"{"larder":1,"name":"site","version":"2","created":"2026-01-01T00:00:00Z","base":{"version":"1","list":"\#(base)"},"members":1}"#,
                        #"{"url":"http://a.example/x","sha256":"\#(digest)","size":\#(size)}"#,
                    ], [.init("unused")])
                let path = try setting.archive(increment, "\(size).zip")
                let code = try await packageCode { try await setting.packages.install(path) }
                #expect(code == (size > 4 << 30 ? .badManifest : .digestMismatch), "\(size)")
                try await #expect(setting.offline("http://a.example/x") == "content")
                try await #expect(setting.offline("http://a.example/y") == "other")
            }
        }
    }

    /// Fields of another client, or of a connection, are left out.
    @Test func fieldsThatStayOutside() async throws {
        let header = #"{"larder":1,"name":"n","version":"1","created":"2026-01-01T00:00:00Z","members":1}"#
        let digest = Digest.of(Array("content".utf8)).hexadecimal
        let line = #"""
            {"url":"http://a.example/x","path":"a.example/x","sha256":"\#(digest)","size":7,"fields":[["Set-Cookie","a=b"],\#
            ["Content-Length","99"],["Transfer-Encoding","chunked"],["Connection","close"],["X-Own","1"]]}
            """#
        try await Setting.run { setting in
            try await setting.packages.install(setting.archive(list([header, line])))
            let response = try #require(try await setting.response("http://a.example/x"))
            let names = Set(response.head.headerFields.map(\.name.canonicalName))
            #expect(names.isDisjoint(with: ["set-cookie", "transfer-encoding", "connection"]))
            #expect(response.head.headerFields[.contentLength] == "7" && names.contains("x-own"))
            try await #expect(setting.offline("http://a.example/x") == "content")
        }
    }

    @Test func passwords() async throws {
        try await Setting.run { setting in
            let archive = try setting.package(["a": "secret content"]) { $0.password = "right" }
            let bytes = try TestFiles.read(archive)
            #expect(!String(decoding: bytes, as: UTF8.self).contains("secret content"))
            var options = InstallOptions()
            try await #expect(packageCode { try await setting.packages.install(archive) } == .passwordRequired)
            options.password = "wrong"
            try await #expect(packageCode { try await setting.packages.install(archive, options) } == .wrongPassword)
            try await #expect(setting.store.listed().isEmpty)
            options.password = "right"
            try await setting.packages.install(archive, options)
            try await #expect(setting.offline("http://a.example/a") == "secret content")
        }
    }
}
