import HTTPTypes
import Larder
import LarderHTTP
import LarderPackages
import Synchronization
import SystemPackage
import TestSupport
import Testing

@Suite struct InstallTests {
    private let long = String(repeating: "0123456789", count: 40_000)

    @Test func membersAnswerOffline() async throws {
        try await Setting.run { setting in
            let archive = try setting.package(["index.html": "<p>", "img/a b.png": "png", "long.bin": long])
            let result = try await setting.packages.install(archive)
            #expect(result.added == 3 && result.ignored == 0 && !result.wasInstalled)
            try await #expect(setting.offline("http://a.example/img/a%20b.png") == "png")
            try await #expect(setting.offline("http://a.example/long.bin") == long)
            let response = try #require(try await setting.response("http://a.example/index.html"))
            #expect(response.head.headerFields[.contentType] == "text/html")
            #expect(response.head.headerFields[.lastModified] == "Thu, 01 Jan 2026 00:00:00 GMT")
            #expect(response.head.headerFields[.expires] == "Fri, 02 Jan 2026 00:00:00 GMT")
            #expect(response.freshSeconds == 86_400)
            // A hit like any other. Nothing is stored under URLs.
            #expect(try setting.keys().isEmpty)
            var plain = false
            let question = PlainQuestion()
            setting.cache.withPlainHit(
                "http://a.example/index.html", question, HeldContentKinds<Int>(), values: { _ in nil }
            ) { _ in plain = true }
            #expect(plain)
            // Stale by now.
            setting.clock.advance(by: .seconds(100_000))
            try await #expect(setting.offline("http://a.example/index.html") == "<p>")
        }
    }

    @Test func aSecondInstallationChangesNothing() async throws {
        try await Setting.run { setting in
            let archive = try setting.package(["a": "1", "b": "2"])
            try await setting.packages.install(archive)
            let before = try await setting.store.figures().counters.puts
            let again = try await setting.packages.install(archive)
            #expect(again.wasInstalled && again.package.memberCount == 2)
            try await #expect(setting.store.figures().counters.puts == before)
            try await setting.store.remove(#require(try setting.member("http://a.example/a")))
            try await #expect(setting.packages.install(archive).wasInstalled)
            try await #expect(setting.offline("http://a.example/a") == nil)
            var options = InstallOptions()
            options.restoresMembers = true
            let restored = try await setting.packages.install(archive, options)
            #expect(restored.added == 1 && restored.unchanged == 1)
            try await #expect(setting.offline("http://a.example/a") == "1")
        }
    }

    @Test func whatIsKnownSurvivesARestart() async throws {
        let clock = TestClock()
        try await withDirectory { directory in
            let path = directory.appending("store")
            for round in 0..<2 {
                let store = try Store(at: path, .testing(clock: clock))
                let setting = Setting(store, clock, directory)
                if round == 0 {
                    let archive = try setting.package(
                        ["a": "1"],
                        folder: {
                            $0.dataFolder = $0.folder
                            $0.dataKey = "own"
                        })
                    var options = InstallOptions()
                    options.source = "https://packages.example/site.zip"
                    options.mode = .pin
                    try await setting.packages.install(archive, options)
                } else {
                    let package = try #require(try await setting.packages.package("site"))
                    #expect(package.version == "1" && package.source == "https://packages.example/site.zip")
                    #expect(package.mode == .pin && package.state == .installed && package.memberCount == 1)
                    #expect(package.installed == clock.now().seconds && package.created == "2026-01-01T00:00:00Z")
                    try await #expect(setting.packages.packages() == [package])
                    try await #expect(setting.packages.dataNames(of: "site") == ["own/a"])
                    let data = try #require(try await setting.packages.data("own/a", of: "site"))
                    try await #expect(data.bytes() == Array("1".utf8))
                    let members = Mutex<[PackageMember]>([])
                    try await setting.packages.forEachMember(of: "site") { member in
                        members.withLock { $0.append(member) }
                    }
                    #expect(members.withLock { $0.map(\.url) } == ["http://a.example/a"])
                    #expect(members.withLock { $0.map(\.digest) } == [Digest.of(Array("1".utf8))])
                    try await #expect(setting.packages.verify("site", isDeep: true).counts == [.intact: 1])
                }
                try finish(store)
            }
        }
    }

    /// AFCache's packager puts no slash between its base and the name of a file at the top of its folder.
    @Test(arguments: [nil, "http://my.example/app", "http://my.example/app/"])
    func theSchemeOfAFCache(_ base: String?) async throws {
        try await Setting.run { setting in
            let archive = RawZip.manifest(
                [
                    "afcpkg://localhostj.json ; Sat, 27 Mar 2004 18:43:30 GMT ; Thu, 29 Jul 2010 14:17:20 GMT",
                    "afcpkg://localhost/img/i.png ; NULL ; NULL", "afcpkg://other.example/k.css ; NULL ; NULL",
                ],
                [
                    .init("localhostj.json", Array("j".utf8)), .init("localhost/img/i.png", Array("i".utf8)),
                    .init("other.example/k.css", Array("k".utf8)),
                ])
            var options = InstallOptions()
            options.baseURL = base
            try await setting.packages.install(setting.archive(archive), options)
            let below = base == nil ? "http://localhost/" : "http://my.example/app/"
            #expect(try setting.members() == ["img/i.png", "j.json", "k.css"].map { below + $0 })
            try await #expect(setting.offline(below + "j.json") == "j")
            // A host alone has no file.
            let none = RawZip.manifest(["afcpkg://other.example ; NULL ; NULL"], [.init("other.example", [1])])
            let path = try setting.archive(none, "none.zip")
            try await #expect(packageCode { try await setting.packages.install(path) } == .badManifest)
        }
    }

    /// The base in the manifest can have that scheme, too.
    @Test func relativeURLsBelowAFCachesBase() async throws {
        try await Setting.run { setting in
            let archive = RawZip.manifest(
                ["baseURL = afcpkg://localhost", "j.json ; NULL ; NULL ; NULL ; j"], [.init("j", Array("j".utf8))])
            try await setting.packages.install(setting.archive(archive))
            try await #expect(setting.offline("http://localhost/j.json") == "j")
        }
    }

    @Test func archivesOfOthers() async throws {
        try await Setting.run { setting in
            // AFCache's: three fields, the path of the base URL left out of the archive, user data.
            let afcache = RawZip(
                [
                    .init("a.example/x.html", Array("x".utf8)),
                    .init("a.example/dir/") { $0.attributes = 0o040755 << 16 },
                    .init(".userdata/key/d.txt", Array("d".utf8)),
                    .init(
                        "afcache.manifest",
                        Array(
                            """
                            http://a.example/app/x.html ; Sat, 27 Mar 2004 18:43:30 GMT+00:00 ; Thu, 29 Jul 2010 14:17:20 GMT+00:00
                            """.utf8)),
                ])
            let result = try await setting.packages.install(setting.archive(afcache, "old one.zip"))
            #expect(result.package.name == "old-one" && result.added == 1 && result.package.dataCount == 1)
            let response = try #require(try await setting.response("http://a.example/app/x.html"))
            #expect(response.head.headerFields[.lastModified] == "Sat, 27 Mar 2004 18:43:30 GMT")
            try await #expect(setting.packages.dataNames(of: "old-one") == ["key/d.txt"])
            // Its own scheme.
            let own = RawZip.manifest(
                ["afcpkg://localhost/y.css ; NULL ; NULL ; text/css"], [.init("localhost/y.css", Array("y".utf8))])
            let path = try setting.archive(own, "own.zip")
            try await setting.packages.install(path)
            try await #expect(setting.offline("http://localhost/y.css") == "y")
            try await setting.packages.remove("own")
            var options = InstallOptions()
            options.baseURL = "https://b.example/base/"
            try await setting.packages.install(path, options)
            try await #expect(setting.offline("https://b.example/base/y.css") == "y")
            // Files alone.
            let plain = RawZip([.init("c.example/z.js", Array("z".utf8))])
            try await setting.packages.install(setting.archive(plain, "plain.zip"))
            try await #expect(setting.offline("https://c.example/z.js") == "z")
        }
    }

    @Test func progressAndCancellation() async throws {
        try await Setting.run { setting in
            let files = Dictionary(uniqueKeysWithValues: (0..<1_000).map { ("f\($0)", "content \($0)") })
            let archive = try setting.package(files)
            let (isHalfWay, isCancelled) = (Latch(), Latch())
            let task = Task { [packages = setting.packages] in
                var options = InstallOptions()
                options.onProgress = { step in
                    #expect(step.totalMembers == 1_002 && step.totalBytes > 10_000)
                    if step.members < 512 { return }
                    isHalfWay.open()
                    isCancelled.block()
                }
                return try await packages.install(archive, options)
            }
            await isHalfWay.wait()
            task.cancel()
            isCancelled.open()
            await #expect(throws: CancellationError.self) { try await task.value }
            try await #expect(setting.store.listed().isEmpty)
            let result = try await setting.packages.install(archive)
            #expect(result.added == 1_000)
        }
    }

    @Test func twoAtOnce() async throws {
        let (isInside, mayContinue) = (Latch(), Latch())
        try await Setting.run(reach: { step in
            if step != "install.begun" { return }
            isInside.open()
            mayContinue.block()
        }) { setting in
            let archive = try setting.package(["a": "1"])
            let first = Task { [packages = setting.packages] in try await packages.install(archive) }
            await isInside.wait()
            try await #expect(packageCode { try await setting.packages.install(archive) } == .busy)
            try await #expect(packageCode { try await setting.packages.remove("site") } == .busy)
            mayContinue.open()
            try await #expect(first.value.added == 1)
        }
    }

    @Test func names() async throws {
        try await Setting.run { setting in
            let archive = try setting.package(["a": "1"])
            for name in ["", ".x", "a b", "a/b", "ü", String(repeating: "n", count: 129)] {
                var options = InstallOptions()
                options.name = name
                try await #expect(packageCode { try await setting.packages.install(archive, options) } == .invalidName)
            }
            try await #expect(packageCode { try await setting.packages.verify("site") } == .notInstalled)
            try await #expect(packageCode { try await setting.packages.remove("site") } == .notInstalled)
            try await #expect(
                packageCode { try await setting.packages.install(setting.directory.appending("none.zip")) } == .io)
        }
    }
}
