import HTTPTypes

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What is kept with an object in addition to its bytes, as JSON in the entry's metadata.
struct ObjectNotes: Codable, Sendable, Equatable {
    /// `Content-Type` of the upload.
    var type: String?
    /// `Content-Encoding` of the upload: the bytes are kept as they came.
    var encoding: String?
    /// `x-artifact-tag` of Turborepo, a signature.
    var artifactTag: String?
    /// `x-artifact-duration` of Turborepo, in milliseconds.
    var artifactDuration: String?

    /// The most that is kept of a field, in bytes.
    private static let limit = 1_024

    /// Of a request.
    init(_ fields: HTTPFields) {
        func kept(_ name: HTTPField.Name) -> String? { fields[name].flatMap { $0.utf8.count <= Self.limit ? $0 : nil } }
        type = kept(.contentType)
        encoding = kept(.contentEncoding)
        artifactTag = kept(.artifactTag)
        artifactDuration = kept(.artifactDuration)
    }

    /// Of an entry; nothing for what was written by something else.
    init(metadata: [UInt8]) {
        self = (try? JSONDecoder().decode(Self.self, from: Data(metadata))) ?? Self([:])
    }

    /// None where there is nothing to keep.
    var metadata: [UInt8] {
        if self == Self([:]) { return [] }
        return (try? JSONEncoder().encode(self)).map { Array($0) } ?? []
    }

    var fields: HTTPFields {
        var fields = HTTPFields()
        fields[.contentType] = type ?? "application/octet-stream"
        fields[.contentEncoding] = encoding
        fields[.artifactTag] = artifactTag
        fields[.artifactDuration] = artifactDuration
        return fields
    }
}

extension HTTPField.Name {
    static let artifactTag = HTTPField.Name("x-artifact-tag")!
    static let artifactDuration = HTTPField.Name("x-artifact-duration")!
    static let allow = HTTPField.Name("Allow")!
    static let dav = HTTPField.Name("DAV")!
    static let depth = HTTPField.Name("Depth")!
}
