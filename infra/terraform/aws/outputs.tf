output "settings" {
  description = "What cloudwhale.toml is to say: terraform output -raw settings > cloudwhale.toml"
  value       = <<-EOT
    mailbox = "s3://${local.bucket}${var.prefix == "" ? "" : "/${var.prefix}"}"

    [clouds.aws]
    regions = ${jsonencode(length(var.regions) == 0 ? [var.region] : var.regions)}
    instance_profile = "${aws_iam_instance_profile.machine.name}"
    scheduler_role = "${aws_iam_role.stops.arn}"
  EOT
}

output "policy" {
  description = "ARN of what whoever runs cloudwhale must be allowed."
  value       = aws_iam_policy.controller.arn
}
