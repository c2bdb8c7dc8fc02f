//! [`named!`]: enums whose variants have names.

/// An enum of which every variant has a name for people and scripts, with the list of all variants
/// and the way from a name back.
macro_rules! named {
    (
        $(#[$about:meta])*
        pub enum $Kind:ident { $($(#[$doc:meta])* $Variant:ident = $name:literal,)+ }
    ) => {
        $(#[$about])*
        pub enum $Kind {
            $($(#[$doc])* $Variant,)+
        }

        impl $Kind {
            /// All of them.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$Variant),+];

            /// Its name on the command line and in records.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$Variant => $name,)+
                }
            }

            /// The one of that name, if it is known.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.name() == name)
            }
        }
    };
}
