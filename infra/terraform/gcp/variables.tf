variable "project" {
  description = "Id of the project that machines are rented in; billing must be on."
  type        = string
}

variable "region" {
  description = "Where the mailbox's bucket is to be, and the machines beside it."
  type        = string
  default     = "us-central1"
}

variable "regions" {
  description = "Where machines may be rented; empty: in the bucket's region."
  type        = list(string)
  default     = []
}

variable "bucket" {
  description = "Name of the mailbox's bucket; empty: cloudwhale-PROJECT."
  type        = string
  default     = ""
}

variable "prefix" {
  description = "Folder of the mailbox in the bucket; another installation takes another."
  type        = string
  default     = "cloudwhale"
}

variable "members" {
  description = "Who is to run cloudwhale, like user:ann@example.com; an owner needs nothing."
  type        = list(string)
  default     = []
}

variable "nat" {
  description = "Whether machines go without addresses of their own, behind Cloud NAT, which costs."
  type        = bool
  default     = false
}

variable "network" {
  description = "Network that machines stand in."
  type        = string
  default     = "default"
}

variable "labels" {
  description = "Further labels of what is made."
  type        = map(string)
  default     = {}
}
