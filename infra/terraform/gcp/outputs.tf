output "settings" {
  description = "What cloudwhale.toml is to say: terraform output -raw settings > cloudwhale.toml"
  value       = <<-EOT
    mailbox = "gs://${local.bucket}${var.prefix == "" ? "" : "/${var.prefix}"}"

    [clouds.gcp]
    project = "${var.project}"
    regions = ${jsonencode(local.regions)}
    service_account = "${google_service_account.machine.email}"
    network = "${var.network}"
    external_address = ${!var.nat}
  EOT
}

output "roles" {
  description = "Roles of the project, by what they are for."
  value       = { for name, role in google_project_iam_custom_role.cloudwhale : name => role.id }
}
