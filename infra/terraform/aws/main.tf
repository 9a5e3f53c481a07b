# What `cloudwhale doctor aws --fix` makes, for those who keep their account in Terraform.
data "aws_caller_identity" "current" {}

locals {
  account = data.aws_caller_identity.current.account_id
  bucket  = var.bucket == "" ? "cloudwhale-${local.account}" : var.bucket

  # After how many days messages go: those about rented machines, and what is written for a moment.
  ages = {
    "orders/@"     = 90
    "inbox/@"      = 90
    "agents/@"     = 90
    "boots/@"      = 90
    "orders/rent-" = 90
    "inbox/rent-"  = 90
    "agents/rent-" = 90
    "boots/rent-"  = 90
    "clocks/"      = 7
    "hello/"       = 7
  }
}

# -- the mailbox -----------------------------------------------------------------------------

resource "aws_s3_bucket" "mailbox" {
  bucket = local.bucket
  tags   = var.tags

  lifecycle {
    ignore_changes = [tags["cloudwhale:installation"], tags_all["cloudwhale:installation"]]
  }
}

resource "aws_s3_bucket_public_access_block" "mailbox" {
  bucket                  = aws_s3_bucket.mailbox.id
  block_public_acls       = true
  ignore_public_acls      = true
  block_public_policy     = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "mailbox" {
  bucket = aws_s3_bucket.mailbox.id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "mailbox" {
  bucket = aws_s3_bucket.mailbox.id

  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm = "AES256"
    }
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "mailbox" {
  bucket = aws_s3_bucket.mailbox.id

  rule {
    id     = join(" ", compact(["cloudwhale", var.prefix, "unfinished"]))
    status = "Enabled"

    filter {
      prefix = local.folder
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 7
    }
  }

  dynamic "rule" {
    for_each = local.ages

    content {
      id     = join(" ", compact(["cloudwhale", var.prefix, rule.key]))
      status = "Enabled"

      filter {
        prefix = "${local.folder}${rule.key}"
      }

      expiration {
        days = rule.value
      }
    }
  }
}

# -- the roles -------------------------------------------------------------------------------

resource "aws_iam_role" "machine" {
  name               = "cloudwhale-machine"
  assume_role_policy = local.policies["machine-trust"]
  tags               = var.tags
}

resource "aws_iam_role_policy" "machine" {
  name   = join(".", compact(["machine", local.bucket, replace(var.prefix, "/", "-")]))
  role   = aws_iam_role.machine.name
  policy = local.policies["machine-policy"]
}

resource "aws_iam_instance_profile" "machine" {
  name = "cloudwhale-machine"
  role = aws_iam_role.machine.name
  tags = var.tags
}

resource "aws_iam_role" "stops" {
  name               = "cloudwhale-stops"
  assume_role_policy = local.policies["scheduler-trust"]
  tags               = var.tags
}

resource "aws_iam_role_policy" "stops" {
  name   = join(".", compact(["stop", local.bucket, replace(var.prefix, "/", "-")]))
  role   = aws_iam_role.stops.name
  policy = local.policies["scheduler-policy"]
}

resource "aws_iam_service_linked_role" "spot" {
  count            = var.make_spot_role ? 1 : 0
  aws_service_name = "spot.amazonaws.com"
}

# -- who runs cloudwhale ---------------------------------------------------------------------

resource "aws_iam_policy" "controller" {
  name   = join(".", compact(["cloudwhale-controller", local.bucket, replace(var.prefix, "/", "-")]))
  policy = local.policies["controller-policy"]
  tags   = var.tags
}

resource "aws_iam_user_policy_attachment" "controller" {
  for_each   = toset(var.users)
  user       = each.value
  policy_arn = aws_iam_policy.controller.arn
}
