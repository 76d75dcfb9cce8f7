import Larder
import LarderHTTP
import LarderPackages
import Synchronization
import SystemPackage
import TestSupport
import Testing

/// What a machine that lost power, or a killed process, leaves at each step of an installation.
@Suite struct CrashTests {
    private static let urls = (0..<600).map { "http://a.example/\($0)" } + ["http://a.example/long"]

    private static func files(_ version: Int) -> [String: String] {
        var files = Dictionary(uniqueKeysWithValues: (0..<600).map { ("\($0)", "\(version) \($0)") })
        files["long"] = String(repeating: "\(version)", count: 500_000)
        return files
    }

    /// Copies the store at every step, and looks at each copy as the next start of the machine would find it.
    @Test(arguments: DisplacementMode.allCases) func atEveryStep(_ mode: DisplacementMode) async throws {
        let copies = Mutex<[(String, FilePath)]>([])
        let source = Mutex<(store: FilePath, directory: FilePath)?>(nil)
        try await Setting.run(reach: { step in
            guard let (store, directory) = source.withLock({ $0 }) else { return }
            let copy = directory.appending("copy-\(copies.withLock { $0.count })")
            do {
                try TestFiles.copy(store, to: copy)
                copies.withLock { $0.append((step, copy)) }
            } catch {
                Issue.record(error)
            }
        }) { setting in
            var options = InstallOptions()
            options.mode = mode
            try await setting.packages.install(setting.package(Self.files(1), "1.zip"), options)
            // Between the versions: something of the network that is older than the next one.
            setting.clock.advance(by: .seconds(10))
            try await setting.fetched(
                "http://a.example/extra", "old", lastModified: "Mon, 01 Dec 2025 00:00:00 GMT",
                cacheControl: "max-age=5")
            setting.clock.advance(by: .seconds(10))
            source.withLock { $0 = (setting.store.path, setting.directory) }
            let second = try setting.package(
                Self.files(2).merging(["extra": "2 extra"]) { $1 }, "2.zip", version: "2")
            try await setting.packages.install(second, options)
            source.withLock { $0 = nil }
            let steps = copies.withLock { $0 }
            #expect(
                Set(steps.map(\.0)).isSuperset(of: [
                    "install.begun", "install.batch", "install.staged", "install.synced", "install.committed",
                ]))
            for (step, path) in steps {
                let isNew = step == "install.committed"
                let store = try Store(at: path, .testing(clock: setting.clock))
                let copy = Setting(store, setting.clock, setting.directory)
                try await Self.expect(isNew ? 2 : 1, copy, "at \(step)")
                try await #expect(copy.packages.check() == [], "\(step)")
                try await copy.packages.recover()
                try await #expect(copy.packages.check() == [], "\(step)")
                try await Self.expect(isNew ? 2 : 1, copy, "after \(step)")
                #expect(try copy.members().count == (isNew ? 602 : 601), "\(step)")
                try await #expect(store.listed(.prefix(Key(PackageKeys.rowPrefix))).count == 1, "\(step)")
                try await #expect(copy.packages.verify("site", isDeep: true).isWhole, "\(step)")
                try await #expect(copy.packages.install(second, options).package.version == "2")
                try await Self.expect(2, copy, "again after \(step)")
                try finish(store)
            }
        }
    }

    private static func expect(_ version: Int, _ setting: Setting, _ when: String) async throws {
        for url in urls {
            let text = try await setting.offline(url)
            if text?.hasPrefix("\(version)") != true {
                Issue.record("\(url) is \(text.map { String($0.prefix(20)) } ?? "missing") \(when)")
                return
            }
        }
        try await #expect(setting.offline("http://a.example/extra") == (version == 1 ? "old" : "2 extra"), "\(when)")
    }

    /// A first installation that ended before its commit leaves nothing that answers, and nothing at all after the next
    /// look.
    @Test func aFirstInstallationThatEnds() async throws {
        try await withDirectory { root in
            let clock = TestClock()
            let store = try Store(at: root.appending("s"), .testing(clock: clock))
            let setting = Setting(store, clock, root) { step in
                if step == "install.synced" { try? TestFiles.copy(root.appending("s"), to: root.appending("copy")) }
            }
            var options = InstallOptions()
            options.mode = .pin
            try await setting.packages.install(setting.package(Self.files(1)), options)
            try finish(store)
            let left = try Store(at: root.appending("copy"), .testing(clock: clock))
            let copy = Setting(left, clock, root)
            for url in Self.urls { try await #expect(copy.response(url) == nil) }
            #expect(try copy.members().count == 601)
            try await copy.packages.recover()
            try await #expect(left.listed().isEmpty)
            #expect(try left.pinnedTags() == ["larder: records of packages"])
            try finish(left)
        }
    }

    /// What comes over the network while a package is staged and settled is newer than the package, and stays.
    @Test(arguments: ["install.batch", "install.synced", "install.committed"])
    func besideTheNetwork(_ moment: String) async throws {
        let setting = Mutex<Setting?>(nil)
        let done = Latch()
        let isOver = Latch()
        try await Setting.run(reach: { step in
            guard step == moment, !done.isOpen, let setting = setting.withLock({ $0 }) else { return }
            done.open()
            Task {
                for name in ["0", "1"] {
                    try await setting.fetched("http://a.example/\(name)", "network", lastModified: nil)
                }
                isOver.open()
            }
            isOver.block()
        }) { whole in
            try await whole.packages.install(whole.package(Self.files(1), "1.zip"))
            whole.clock.advance(by: .seconds(10))
            setting.withLock { $0 = whole }
            try await whole.packages.install(whole.package(Self.files(2), "2.zip", version: "2"))
            setting.withLock { $0 = nil }
            for name in ["0", "1"] { try await #expect(whole.offline("http://a.example/\(name)") == "network") }
            for name in ["2", "3"] { try await #expect(whole.offline("http://a.example/\(name)") == "2 \(name)") }
            #expect(try whole.members().count == 601 && whole.keys().count == 2)
        }
    }

    /// A removal that is cut off is finished by the next process.
    @Test(arguments: [("remove.begun", true), ("remove.committed", true), ("remove.committed", false)])
    func aRemovalThatEnds(_ moment: String, _ keepsMembers: Bool) async throws {
        try await withDirectory { root in
            let clock = TestClock()
            let store = try Store(at: root.appending("s"), .testing(clock: clock))
            let setting = Setting(store, clock, root) { step in
                if step == moment { try? TestFiles.copy(root.appending("s"), to: root.appending("copy")) }
            }
            var options = InstallOptions()
            options.mode = .whole
            try await setting.packages.install(setting.package(Self.files(1)), options)
            try await setting.packages.remove("site", keepsMembers: keepsMembers)
            try finish(store)
            let left = try Store(at: root.appending("copy"), .testing(clock: clock))
            let copy = Setting(left, clock, root)
            try await #expect(copy.packages.package("site")?.state == (moment == "remove.begun" ? .removing : nil))
            for url in Self.urls { try await #expect((copy.response(url) != nil) == keepsMembers) }
            try await #expect(copy.packages.check() == [])
            try await copy.packages.recover()
            try await #expect(copy.packages.packages().isEmpty)
            for url in Self.urls { try await #expect((copy.response(url) != nil) == keepsMembers) }
            #expect(try copy.keys().count == (keepsMembers ? 601 : 0))
            try await #expect(left.listed().count == (keepsMembers ? 601 : 0))
            try finish(left)
        }
    }
}
