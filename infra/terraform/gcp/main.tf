# What `cloudwhale doctor gcp --fix` makes, for those who keep their project in Terraform.
locals {
  bucket  = var.bucket == "" ? "cloudwhale-${replace(replace(var.project, ":", "-"), ".", "-")}" : var.bucket
  regions = length(var.regions) == 0 ? [var.region] : var.regions

  apis = [
    "compute.googleapis.com", "storage.googleapis.com", "iam.googleapis.com",
    "cloudresourcemanager.googleapis.com",
  ]

  # After how many days messages go: those about rented machines, and what is written for a moment.
  ages = {
    90 = ["orders/rent-", "inbox/rent-", "agents/rent-", "boots/rent-"]
    7  = ["clocks/", "hello/"]
  }
}

resource "google_project_service" "needed" {
  for_each           = toset(local.apis)
  service            = each.value
  disable_on_destroy = false
}

# -- the mailbox -----------------------------------------------------------------------------

resource "google_storage_bucket" "mailbox" {
  name                        = local.bucket
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  labels                      = var.labels
  depends_on                  = [google_project_service.needed]

  soft_delete_policy {
    retention_duration_seconds = 0
  }

  lifecycle_rule {
    action {
      type = "AbortIncompleteMultipartUpload"
    }

    condition {
      age            = 7
      matches_prefix = local.folder == "" ? [] : [local.folder]
    }
  }

  dynamic "lifecycle_rule" {
    for_each = local.ages

    content {
      action {
        type = "Delete"
      }

      condition {
        age            = lifecycle_rule.key
        matches_prefix = [for name in lifecycle_rule.value : "${local.folder}${name}"]
      }
    }
  }

  lifecycle {
    ignore_changes = [labels["cloudwhale-installation"]]
  }
}

# -- machines --------------------------------------------------------------------------------

resource "google_service_account" "machine" {
  account_id   = "cloudwhale-machine"
  display_name = "machines that cloudwhale rents"
  depends_on   = [google_project_service.needed]
}

# -- a way out for machines without addresses ------------------------------------------------

resource "google_compute_router" "cloudwhale" {
  for_each = toset(var.nat ? local.regions : [])
  name     = "cloudwhale"
  region   = each.value
  network  = var.network
}

resource "google_compute_router_nat" "cloudwhale" {
  for_each                           = google_compute_router.cloudwhale
  name                               = "cloudwhale"
  router                             = each.value.name
  region                             = each.value.region
  nat_ip_allocate_option             = "AUTO_ONLY"
  source_subnetwork_ip_ranges_to_nat = "ALL_SUBNETWORKS_ALL_IP_RANGES"
}
