# Roles and bindings are the files of ../../gcp; nothing of them is said a second time here.
locals {
  files  = "${path.module}/../../gcp"
  folder = var.prefix == "" ? "" : "${var.prefix}/"

  roles = {
    for name in [
      "controller", "acting", "mailbox", "machine-bucket", "machine-reading", "machine-writing",
      "machine-removing",
    ] :
    name => jsondecode(file("${local.files}/${name}.json"))
  }

  bindings = jsondecode(replace(replace(
    file("${local.files}/bindings.json"),
    "objects/cloudwhale/", "objects/${local.folder}"),
  "BUCKET", local.bucket))

  machines    = { for one in local.bindings : one.role => one if one.who == "MACHINE" }
  controllers = { for one in local.bindings : one.role => one if one.who == "CONTROLLER" }

  given = {
    for pair in setproduct(keys(local.controllers), var.members) :
    "${pair[0]} ${pair[1]}" => { role = pair[0], on = local.controllers[pair[0]].on, member = pair[1] }
  }
}

resource "google_project_iam_custom_role" "cloudwhale" {
  for_each    = local.roles
  role_id     = "cloudwhale_${replace(each.key, "-", "_")}"
  title       = each.value.title
  description = each.value.description
  stage       = each.value.stage
  permissions = each.value.includedPermissions
  depends_on  = [google_project_service.needed]
}

# -- machines --------------------------------------------------------------------------------

resource "google_storage_bucket_iam_member" "machine" {
  for_each = local.machines
  bucket   = google_storage_bucket.mailbox.name
  role     = google_project_iam_custom_role.cloudwhale[each.key].id
  member   = google_service_account.machine.member

  dynamic "condition" {
    for_each = can(each.value.condition) ? [each.value.condition] : []

    content {
      title      = condition.value.title
      expression = condition.value.expression
    }
  }
}

# -- who runs cloudwhale ---------------------------------------------------------------------

resource "google_project_iam_member" "controller" {
  for_each = { for key, one in local.given : key => one if one.on == "project" }
  project  = var.project
  role     = google_project_iam_custom_role.cloudwhale[each.value.role].id
  member   = each.value.member
}

resource "google_service_account_iam_member" "controller" {
  for_each           = { for key, one in local.given : key => one if one.on == "account" }
  service_account_id = google_service_account.machine.name
  role               = google_project_iam_custom_role.cloudwhale[each.value.role].id
  member             = each.value.member
}

resource "google_storage_bucket_iam_member" "controller" {
  for_each = { for key, one in local.given : key => one if one.on == "bucket" }
  bucket   = google_storage_bucket.mailbox.name
  role     = google_project_iam_custom_role.cloudwhale[each.value.role].id
  member   = each.value.member
}
