import Foundation
import Larder
import LarderHTTP
import LarderPackages
import Synchronization
import SystemPackage
import TestSupport
import Testing

/// Stores as they were before packages had generations. They were written by cachectl 0.1 of 2026-11-26: three packages
/// of three responses (`one.txt`, `d/two.txt`, `three.json`), for a.example with mode `pin` and user data, for
/// b.example with mode `members`, for c.example with mode `whole`; then a process that was killed. `former-staged`:
/// before the commit of a package for d.example. `former-committed`: after that of version 2 of the first, in which
/// `one.txt` has changed, `four.txt` is new and `three.json` is gone.
#if _pointerBitWidth(_64) && _endian(little)
    @Suite struct FormerPackagesTests {
        private func withGolden(
            _ name: String, _ body: (Setting) async throws -> Void,
            reach: @escaping @Sendable (String) -> Void = { _ in }
        ) async throws {
            try await withDirectory { directory in
                let path = directory.appending("store")
                let golden = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                    .appendingPathComponent("Golden/\(name)")
                try FileManager.default.copyItem(at: golden, to: URL(fileURLWithPath: path.string))
                let clock = TestClock(wall: Timestamp(seconds: 1_795_800_000))
                let store: Store
                do {
                    store = try Store(at: path, .testing(clock: clock))
                } catch let error as LarderError where error.code == .formatMismatch {
                    // Written with another version of LMDB.
                    try await Store.rebuildIndex(at: path, .testing(clock: clock))
                    store = try Store(at: path, .testing(clock: clock))
                }
                try await body(Setting(store, clock, directory, reach: reach))
                try finish(store)
            }
        }

        private let first = ["one.txt": "one\n", "d/two.txt": "two\n", "three.json": "{\"a\":1}\n"]
        private let second = ["one.txt": "one-2\n", "d/two.txt": "two\n", "four.txt": "new\n"]

        private func expect(_ files: [String: String], _ host: String, _ setting: Setting) async throws {
            for (name, text) in files {
                try await #expect(setting.offline("https://\(host)/\(name)") == text, "\(host)/\(name)")
            }
        }

        private func expectTakenOver(_ setting: Setting) async throws {
            let keys = try await setting.store.listed().map(\.text)
            let former = ["larder:package ", "larder:package-", "larder:install ", "larder:displaced "]
            #expect(!keys.contains { key in former.contains { key.hasPrefix($0) } || key.hasPrefix("http") }, "\(keys)")
            let tags = try setting.store.pinnedTags()
            #expect(tags.allSatisfy { $0.hasPrefix("larder:p ") || $0 == PackageKeys.recordTag }, "\(tags)")
            try await #expect(setting.packages.check() == [])
            for package in try await setting.packages.packages() {
                try await #expect(setting.packages.verify(package.name, isDeep: true).counts == [.intact: 3])
            }
        }

        @Test(arguments: ["former-staged", "former-committed"]) func isTakenOver(_ name: String) async throws {
            try await withGolden(name) { setting in
                // Until then members are responses like any other, but for those of the mode `whole`.
                try await expect(first, "b.example", setting)
                for round in 0..<2 {
                    try await setting.packages.recover()
                    let packages = try await setting.packages.packages()
                    #expect(packages.map(\.name) == ["members", "pinned", "whole"], "round \(round)")
                    #expect(packages.map(\.mode) == [.members, .pin, .whole])
                    #expect(packages.allSatisfy { $0.state == .installed })
                    #expect(packages[1].version == (name == "former-staged" ? "1" : "2"))
                    try await expect(name == "former-staged" ? first : second, "a.example", setting)
                    try await expect(first, "b.example", setting)
                    try await expect(first, "c.example", setting)
                    try await #expect(setting.offline("https://d.example/one.txt") == nil)
                    try await expectTakenOver(setting)
                }
                if name == "former-staged" {
                    try await #expect(
                        setting.packages.data("notes.txt", of: "pinned")?.bytes() == Array("user\n".utf8))
                }
                // And they still work as packages.
                for package in try await setting.packages.packages() {
                    try await setting.packages.remove(package.name)
                }
                try await #expect(setting.store.listed().isEmpty)
            }
        }

        /// A process that is killed while it takes them over leaves the rest to the next.
        @Test(arguments: ["former-staged", "former-committed"]) func canBeCutOff(_ name: String) async throws {
            let copies = Mutex<[(step: String, path: FilePath)]>([])
            let place = Mutex<Setting?>(nil)
            try await withGolden(name) { setting in
                place.withLock { $0 = setting }
                try await setting.packages.recover()
                place.withLock { $0 = nil }
                let steps = copies.withLock { $0 }
                // Of three packages three each, and one of the installation that was cut off.
                #expect(steps.count == 10)
                for (step, path) in steps {
                    let store = try Store(at: path, .testing(clock: setting.clock))
                    let copy = Setting(store, setting.clock, setting.directory)
                    try await expect(first, "b.example", copy)
                    try await copy.packages.recover()
                    try await expect(name == "former-staged" ? first : second, "a.example", copy)
                    try await expect(first, "b.example", copy)
                    try await expect(first, "c.example", copy)
                    try await #expect(copy.packages.packages().count == 3, "\(step)")
                    try await expectTakenOver(copy)
                    try finish(store)
                }
            } reach: { step in
                guard let setting = place.withLock({ $0 }) else { return }
                let copy = setting.directory.appending("copy-\(copies.withLock { $0.count })")
                do {
                    try TestFiles.copy(setting.store.path, to: copy)
                    copies.withLock { $0.append((step, copy)) }
                } catch {
                    Issue.record(error)
                }
            }
        }
    }
#endif
