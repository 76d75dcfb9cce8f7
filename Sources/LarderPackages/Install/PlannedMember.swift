import HTTPCaching
import HTTPTypes
import Larder

/// A response in a package.
struct PlannedMember {
    /// The place of its bytes.
    enum Content {
        case archive(ZipReader.Member)
        /// In the store, as the installed version has them.
        case installed
    }

    let key: Key
    let url: String
    let head: HTTPResponse
    /// The time at which the response was current.
    let date: Instant
    /// That time, or the time when the package was made, as the package states it; nil if it states neither.
    let stated: Instant?
    /// True if the package states the time for this response.
    let hasOwnDate: Bool
    let content: Content
    /// The digest that the package states for the content; nil if it states none.
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
