import HTTPCaching
import HTTPTypes
import Larder

/// A response that a package brings.
struct PlannedMember {
    /// Where its bytes are.
    enum Content {
        case archive(ZipReader.Member)
        /// In the store, as the installed version has them.
        case installed
    }

    let key: Key
    let url: String
    let head: HTTPResponse
    /// When the response was current.
    let date: Instant
    /// When that was, or when the package was made, as the package says; nil if it does not.
    let stated: Instant?
    /// Whether the package says it of this response.
    let hasOwnDate: Bool
    let content: Content
    /// What the package says of the content; nil if it says nothing.
    let digest: Digest?
    let length: Int64
    /// The line of the member list, where the package has one.
    let line: [UInt8]?
}

/// A file of user data.
struct PlannedData {
    let name: String
    let content: PlannedMember.Content
    let digest: Digest?
    let length: Int64
    let line: [UInt8]?
}
