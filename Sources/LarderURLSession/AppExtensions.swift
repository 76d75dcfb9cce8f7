import Foundation
import Larder

extension Configuration {
    /// Settings for an app extension, or another process that may take little memory and address space: an index map of
    /// 32 MiB, and 1 MiB each for puts that are not yet committed and for entries in memory. With a budget of 12 MB the
    /// index cannot fill that map.
    ///
    /// - Parameter budget: the byte budget. Default: 12 MB.
    /// - Returns: a configuration, of which more can be set.
    public static func forAppExtension(budget: ByteCount = .megabytes(12)) -> Configuration {
        var configuration = Configuration(budget: Budget(bytes: budget))
        configuration.indexMapSize = .mebibytes(32)
        configuration.pendingLimit = .mebibytes(1)
        configuration.memoryLimit = .mebibytes(1)
        return configuration
    }
}

#if canImport(Darwin)
    extension Store {
        /// Opens a store in the container of an app group, in its `Library/Caches`, which is not backed up. One process
        /// can use it at a time (`docs/recovery.md`): give the app and each extension a name of their own. Untested.
        ///
        /// - Parameters:
        ///   - group: the identifier of the group, as the entitlement has it.
        ///   - name: the name of the directory. Default: `larder`.
        ///   - configuration: settings of the store. Default: `Configuration.forAppExtension(budget:)`.
        /// - Throws: `CocoaError.fileNoSuchFile` where the process is not in the group; `LarderError` as other opens
        ///   do.
        public convenience init(
            appGroup group: String, name: String = "larder", _ configuration: Configuration = .forAppExtension()
        ) throws {
            guard let container = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group) else {
                throw CocoaError(
                    .fileNoSuchFile,
                    userInfo: [NSLocalizedDescriptionKey: "this process has no container of the app group '\(group)'"])
            }
            let caches = container.appendingPathComponent("Library/Caches", isDirectory: true)
            try FileManager.default.createDirectory(at: caches, withIntermediateDirectories: true)
            try self.init(at: caches.appendingPathComponent(name, isDirectory: true), configuration)
        }
    }
#endif
