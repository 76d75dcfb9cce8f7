import Foundation
import SystemPackage

/// A path for a store that does not exist yet, in memory where the system has such a place: tests are not about the
/// disk.
public func temporaryStorePath() -> FilePath {
    let parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NSTemporaryDirectory()
    return FilePath(parent).appending("larder-test-\(UUID().uuidString)")
}

/// Removes a directory and what is in it.
public func removeTree(_ path: FilePath) {
    try? FileManager.default.removeItem(atPath: path.string)
}
