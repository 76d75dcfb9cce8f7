#if LARDER_FAILPOINTS
    import Failpoints
    import SystemPackage
    import TestSupport
    import Testing

    @testable import Larder

    /// What others find in a directory in which a store is being made.
    struct CreationTests {
        /// The maker stops between two steps: those who read find no store, or a whole one, and never a damaged one.
        @Test(arguments: Failpoints.steps.filter { $0.hasPrefix("create.") || $0.hasPrefix("open.") })
        func aStoreInTheMakingIsNoneOrWhole(_ step: String) throws {
            try withDirectory { path in
                let maker = try Worker(
                    store: path.string, mode: "count", seed: 0, count: 0,
                    environment: [Failpoints.variable: "\(step)=kill@1"])
                #expect(maker.finish().isEmpty)
                let isThere = try Store.exists(at: path)
                let isAfter = step.hasPrefix("open.") || step == "create.format-renamed"
                #expect(isThere == isAfter)
                let readOnly = Configuration.testing { $0.isReadOnly = true }
                do {
                    let store = try Store(at: path, readOnly)
                    try #expect(store.statistics().entryCount == 0)
                    try store.close()
                    #expect(isThere)
                } catch let error as LarderError {
                    #expect(!isThere && error.code == .invalidArgument, "\(error)")
                }
                let store = try Store(at: path, .testing())
                try store.put(body(9000), for: "k")
                try finish(store)
            }
        }

        @Test func aStoreThatLostItsFormatIsDamaged() throws {
            try withDirectory { path in
                let first = try Store(at: path, .testing())
                try first.put([1], for: "k")
                try first.close()
                try #require(unlink(path.appending("FORMAT").string) == 0)
                let readOnly = Configuration.testing { $0.isReadOnly = true }
                try #expect(code { try Store.exists(at: path) } == .formatMismatch)
                try #expect(code { _ = try Store(at: path, readOnly) } == .formatMismatch)
                // Others may have put something beside it.
                try TestFiles.write([1], to: path.appending("stray"))
                try Store.rebuildIndex(at: path, .testing())
                let store = try Store(at: path, .testing())
                try #expect(store.bytes("k") == [1])
                TestFiles.remove(path.appending("stray"))
                try finish(store)
            }
        }
    }
#endif
