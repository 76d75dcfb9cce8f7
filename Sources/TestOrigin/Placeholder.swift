/// A scripted origin.
enum TestOriginPlaceholder {}
