#if LARDER_FAILPOINTS
    import Failpoints
    import Foundation
    import Locks
    import TestSupport
    import Testing

    @testable import Larder

    /// A process that is being started has copies of its parent's descriptors until it runs its own program, and the
    /// locks of flock(2) with them.
    struct InstanceLockTests {
        enum Holder: CaseIterable { case question, sweep }

        @Test(arguments: Holder.allCases)
        func aCopyOfADescriptorDoesNotKeepADeadInstanceLocked(_ holder: Holder) throws {
            try withDirectory { path in
                let staging = try Directory(path: path)
                let mark = path.appending(Layout.instanceLock(7))
                try TestFiles.write([], to: mark)
                let file = try #require(TestFiles.status(mark))
                let copies = Mutex<[Int32]>([])
                defer { for copy in copies.withLock({ $0 }) { close(copy) } }
                let scope = FaultScope(under: mark.string)
                scope.at("flock") { copies.withLock { $0 += Self.copies(of: file) } }
                switch holder {
                case .question: try #expect(!InstanceLock.isAlive(7, staging: staging))
                case .sweep: try #expect(InstanceLock.seize(7, staging: staging, missingIsDead: false) != nil)
                }
                scope.lift()
                #expect(!copies.withLock { $0.isEmpty })
                try #expect(InstanceLock.seize(7, staging: staging, missingIsDead: false) != nil)
                try #expect(!InstanceLock.isAlive(7, staging: staging))
            }
        }

        /// Copies of the open descriptors of a file.
        private static func copies(of file: stat) -> [Int32] {
            (Int32(0)..<8192).compactMap { descriptor in
                var status = stat()
                guard fstat(descriptor, &status) == 0, status.st_ino == file.st_ino,
                    status.st_dev == file.st_dev
                else { return nil }
                return dup(descriptor)
            }
        }
    }
#endif
