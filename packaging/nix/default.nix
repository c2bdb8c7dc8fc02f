# cryptmark for Nix, from this checkout: `nix-build packaging/nix`.
{
  pkgs ? import <nixpkgs> { },
}:

pkgs.rustPlatform.buildRustPackage {
  pname = "cryptmark";
  version = "0.2.0";

  src = pkgs.lib.cleanSource ../..;
  cargoLock.lockFile = ../../Cargo.lock;

  nativeBuildInputs = [ pkgs.installShellFiles ];

  buildFeatures = [
    "fleet"
    "rustcrypto"
    "tls"
    "ublk"
  ];

  # The tests need other programs, and some need root: see `cargo xtask test`.
  doCheck = false;

  postInstall = ''
    mkdir man
    $out/bin/cryptmark man --out-dir man
    installManPage man/*.1
    for shell in bash fish zsh; do
      $out/bin/cryptmark completions $shell > cryptmark.$shell
      installShellCompletion --cmd cryptmark --$shell cryptmark.$shell
    done
  '';

  meta = {
    description = "Measures what encrypting storage costs, and says which set-up to choose";
    # The lab kernel's patches, which the program carries as text, are under the GPL.
    license = with pkgs.lib.licenses; [
      mit
      asl20
      gpl2Only
    ];
    mainProgram = "cryptmark";
    platforms = pkgs.lib.platforms.linux;
  };
}
