import SystemPackage

/// Where the file of a body was when it was opened. Every hit of a large body has one, and few need its path, which is
/// joined when it is asked for.
struct BodyPlace: Sendable {
    enum Name: Sendable {
        /// In `blobs/`.
        case digest(Digest)
        /// In `staging/`.
        case token(StagingToken)
    }

    let directory: Directory
    let name: Name

    var path: FilePath {
        switch name {
        case .digest(let digest): directory.path(of: Layout.blob(digest))
        case .token(let token): directory.path(of: token.name)
        }
    }
}
