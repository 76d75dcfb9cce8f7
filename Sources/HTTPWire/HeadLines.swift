import HTTPTypes

/// The head of a final response as the bytes that came. Where it is only passed on, objects made of its fields would be
/// for nothing.
package struct HeadLines: Sendable {
    package let status: HTTPResponse.Status
    private let bytes: [UInt8]
    private var lines: [FieldLine]
    /// Fields that follow those that came.
    package var added = HTTPFields()

    /// - Parameter lines: of those bytes.
    init(_ status: HTTPResponse.Status, _ bytes: UnsafeRawBufferPointer, _ lines: [FieldLine]) {
        self.status = status
        self.bytes = Array(bytes)
        self.lines = lines
    }

    /// The head as objects: all fields in order.
    package var response: HTTPResponse {
        var fields = fields { _ in true }
        for field in added { fields.append(field) }
        return HTTPResponse(status: status, headerFields: fields)
    }

    /// Some of the fields that came, as objects.
    /// - Parameter isWanted: gets the name as it was written.
    package func fields(named isWanted: (UnsafeRawBufferPointer) -> Bool) -> HTTPFields {
        var fields = HTTPFields()
        bytes.withBytes { bytes in
            for line in lines where isWanted(UnsafeRawBufferPointer(rebasing: bytes[line.name])) {
                // The parser has seen to it that each name is a token.
                if let field = line.field(in: bytes) { fields.append(field) }
            }
        }
        return fields
    }

    /// The value of the only one of some fields that came; nil if there are several, if it has another name, or if its
    /// line is folded.
    /// - Parameters:
    ///   - name: in lower case.
    ///   - isMeant: gets the name as it was written.
    package func onlyValue(_ name: StaticString, of isMeant: (UnsafeRawBufferPointer) -> Bool) -> [UInt8]? {
        bytes.withBytes { bytes in
            var only: FieldLine?
            for line in lines where isMeant(UnsafeRawBufferPointer(rebasing: bytes[line.name])) {
                guard only == nil, !line.isFolded, bytes.spells(name, at: line.name) else { return nil }
                only = line
            }
            return only.map { Array(bytes[$0.value]) }
        }
    }

    /// Whether one of some texts is in the value of one of some fields that came.
    /// - Parameters:
    ///   - texts: in lower case; found in letters of any case.
    ///   - isMeant: gets the name as it was written.
    package func mentions(_ texts: [StaticString], in isMeant: (UnsafeRawBufferPointer) -> Bool) -> Bool {
        bytes.withBytes { bytes in
            lines.contains { line in
                isMeant(UnsafeRawBufferPointer(rebasing: bytes[line.name]))
                    && texts.contains { text in
                        line.value.dropLast(max(0, text.utf8CodeUnitCount - 1)).contains { start in
                            bytes.spells(text, at: start..<start + text.utf8CodeUnitCount)
                        }
                    }
            }
        }
    }

    /// Whether a field came.
    /// - Parameter name: in lower case.
    package func contains(_ name: StaticString) -> Bool {
        bytes.withBytes { bytes in lines.contains { bytes.spells(name, at: $0.name) } }
    }

    /// Takes out the fields of the connection. Returns false, having done nothing, where bytes do not tell: a line is
    /// folded, or `Connection` names other fields.
    /// - Parameter isOfConnection: gets the name as it was written.
    package mutating func removeConnectionFields(_ isOfConnection: (UnsafeRawBufferPointer) -> Bool) -> Bool {
        bytes.withBytes { bytes in
            let isPlain = lines.allSatisfy { line in
                !line.isFolded
                    && (line.kind != .connection || bytes.spells("keep-alive", at: line.value)
                        || bytes.spells("close", at: line.value))
            }
            if isPlain { lines.removeAll { isOfConnection(UnsafeRawBufferPointer(rebasing: bytes[$0.name])) } }
            return isPlain
        }
    }

    /// Calls a function with name and value of each field, as they came, and of those that were added.
    fileprivate func forEachField<Failure: Error>(
        _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        try bytes.withBytes { (bytes) throws(Failure) in
            for line in lines {
                try body(
                    UnsafeRawBufferPointer(rebasing: bytes[line.name]),
                    UnsafeRawBufferPointer(rebasing: bytes[line.value]))
            }
        }
        try added.forEachField(body)
    }
}

/// The head of a response in one of its forms.
package enum HeadForm: Sendable {
    case objects(HTTPResponse)
    /// To write it takes that no line is folded, as after ``HeadLines/removeConnectionFields(_:)``.
    case lines(HeadLines)

    package var status: HTTPResponse.Status {
        switch self {
        case .objects(let head): head.status
        case .lines(let head): head.status
        }
    }

    /// The head as objects, made of lines where it has to be.
    package var response: HTTPResponse {
        get {
            switch self {
            case .objects(let head): head
            case .lines(let head): head.response
            }
        }
        _modify {
            var head = response
            // A second reference to the fields would cost a copy.
            self = .objects(HTTPResponse(status: head.status))
            defer { self = .objects(head) }
            yield &head
        }
    }

    /// Calls a function with name and value of each field.
    package func forEachField<Failure: Error>(
        _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        switch self {
        case .objects(let head): try head.headerFields.forEachField(body)
        case .lines(let head): try head.forEachField(body)
        }
    }
}

extension HTTPFields {
    fileprivate func forEachField<Failure: Error>(
        _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        for field in self { try field.withBytes(body) }
    }
}

extension HTTPField {
    /// Calls a function with the name, as it was written, and the value.
    func withBytes<Failure: Error>(
        _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        // A view of a string would give its bytes one by one.
        var name = name.rawName
        try name.withUTF8 { name in
            Result { () throws(Failure) in
                try withUnsafeBytesOfValue { (value) throws(Failure) in
                    try body(UnsafeRawBufferPointer(name), UnsafeRawBufferPointer(value))
                }
            }
        }.get()
    }
}
