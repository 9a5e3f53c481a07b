# The policies are the files of ../../aws, filled in; nothing of them is said a second time here.
locals {
  files  = "${path.module}/../../aws"
  folder = var.prefix == "" ? "" : "${var.prefix}/"

  policies = {
    for name in [
      "controller-policy", "machine-policy", "machine-trust", "reaper-policy", "reaper-trust",
      "scheduler-policy", "scheduler-trust",
    ] :
    name => replace(replace(replace(replace(
      file("${local.files}/${name}.json"),
      "BUCKET/cloudwhale/", "BUCKET/${local.folder}"),
      "\"cloudwhale/", "\"${local.folder}"),
      "ACCOUNT", local.account),
    "BUCKET", local.bucket)
  }
}
