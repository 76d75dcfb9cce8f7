#if LARDER_FAILPOINTS
    import Failpoints
    import Foundation
    import TestSupport
    import Testing

    struct FailpointTests {
        @Test func rulesSayWhichHitDoesWhat() throws {
            let always = try #require(FaultRule("rename=EIO"))
            #expect(always.action == .fault(.failure(5)) && always.first == 1 && always.isLasting)
            let once = try #require(FaultRule("pwrite=short@3"))
            #expect(once.action == .fault(.short) && once.first == 3 && !once.isLasting)
            let later = try #require(FaultRule("mdb_put=MDB_MAP_FULL@2+"))
            #expect(later.action == .fault(.failure(-30792)) && later.first == 2 && later.isLasting)
            #expect(FaultRule.list("a=kill@1;b=-7")?.map(\.action) == [.kill, .fault(.failure(-7))])
        }

        @Test(arguments: ["", "rename", "rename=", "=EIO", "rename=EWRONG", "rename=EIO@0", "rename=EIO@x", "rename=0"])
        func otherTextIsNoRule(_ text: String) { #expect(FaultRule(text) == nil) }

        @Test func scopesCountAndFailUnderTheirDirectoryOnly() throws {
            let scope = FaultScope(under: "/a/b", try #require(FaultRule.list("x=EIO@2")))
            for place in ["/a/b", "/a/bc", "/a", "/a/b/c"] {
                let fault = injectedFault("x", at: place)
                #expect(fault == (place == "/a/b/c" ? .failure(5) : nil))
            }
            #expect(scope.hits == ["x": 2] && scope.injected == 1)
            scope.lift()
            #expect(injectedFault("x", at: "/a/b") == nil)
        }

        /// As `/var` on macOS: descriptors give the path that the link stands for.
        @Test func scopesBelowALinkCoverBothPaths() throws {
            try withDirectory { directory in
                let real = directory.appending("real").string
                let link = directory.appending("link").string
                try FileManager.default.createDirectory(atPath: real, withIntermediateDirectories: false)
                try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: real)
                let scope = FaultScope(under: link, try #require(FaultRule.list("x=EIO")))
                #expect(injectedFault("x", at: real + "/f") == .failure(5))
                #expect(injectedFault("x", at: link + "/f") == .failure(5))
                #expect(injectedFault("x", at: directory.string) == nil)
                #expect(scope.injected == 2)
            }
        }

        /// The list is what `tools/torture` kills processes by.
        @Test func everyStepIsListed() throws {
            let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Sources/Larder")
            var steps: Set<String> = []
            for name in try FileManager.default.subpathsOfDirectory(atPath: root.path) where name.hasSuffix(".swift") {
                let text = try String(contentsOf: root.appendingPathComponent(name), encoding: .utf8)
                for match in text.matches(of: /(?:reach|failpoint)\("([^"]+)"/) { steps.insert(String(match.1)) }
            }
            #expect(steps.sorted() == Failpoints.steps)
        }
    }
#endif
